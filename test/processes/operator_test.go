package processes

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/tidemark-io/tidemark/test/network"
)

// operator is one process of the manager, on a host of its own.
type operator struct {
	env  *environment
	host *network.Link // nil without a network
	name string        // of its log file

	mu  sync.Mutex
	cmd *exec.Cmd // nil while none runs
}

func (e *environment) newOperator(name string) (*operator, error) {
	host, err := e.join()
	return &operator{env: e, host: host, name: name}, err
}

func (o *operator) start() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	cmd := o.env.command(o.host, "manager", "--replica-image=tidemark:test", "--metrics-address=0", "--health-address=127.0.0.1:0")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+o.env.kubeconfig)
	log, err := os.OpenFile(filepath.Join(o.env.logs, o.name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the operator: %w", err)
	}
	o.cmd = cmd
	return nil
}

func (o *operator) signal(s syscall.Signal) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.cmd == nil {
		return nil
	}
	return o.cmd.Process.Signal(s)
}

// kill kills it, if it runs.
func (o *operator) kill() error {
	if err := o.signal(syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill the operator: %w", err)
	}
	return o.wait()
}

// end lets it stop in good order.
func (o *operator) end() {
	_ = o.signal(syscall.SIGTERM)
	_ = o.wait()
}

func (o *operator) wait() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.cmd != nil {
		_ = o.cmd.Wait() // it was told to end
		o.cmd = nil
	}
	return nil
}

// revive starts it again if it has ended by itself, as its container's kubelet would: an operator that cannot reach
// the API server may give up.
func (o *operator) revive() error {
	o.mu.Lock()
	alive := o.cmd != nil && o.cmd.Process.Signal(syscall.Signal(0)) == nil && !zombie(o.cmd.Process.Pid)
	o.mu.Unlock()
	if alive {
		return nil
	}
	if err := o.wait(); err != nil {
		return err
	}
	return o.start()
}

// zombie tells whether a process has ended and was not waited for.
func zombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	for i := len(stat) - 1; i >= 0; i-- {
		if stat[i] == ')' {
			return i+2 < len(stat) && stat[i+2] == 'Z'
		}
	}
	return true
}
