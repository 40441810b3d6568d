package processes

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const (
	// apiAddress is the API server's on the network of the processes, so that it can be cut off alone.
	apiAddress = "198.18.0.2"
	// callTimeout ends a call of the tests to an API server that stands still.
	callTimeout = 3 * time.Second
)

// apiServer is a kube-apiserver that can be killed, and started again with the arguments that it had.
type apiServer struct {
	env    *envtest.Environment
	config *rest.Config
	args   []string

	mu      sync.Mutex
	process *os.Process
	again   *exec.Cmd // what runs since a restart
}

func startAPIServer(onNetwork bool) (*apiServer, error) {
	server := &envtest.Environment{CRDDirectoryPaths: []string{filepath.Join("..", "..", "config", "crd", "bases")}, ErrorIfCRDPathMissing: true, ControlPlaneStartTimeout: patience}
	if onNetwork {
		serving := &server.ControlPlane.GetAPIServer().SecureServing
		serving.Address, serving.Port = apiAddress, "6443"
	}
	cfg, err := server.Start()
	if err != nil {
		return nil, err
	}
	s := &apiServer{env: server, config: cfg}
	return s, s.find()
}

// find looks for the process among this one's children: envtest does not tell.
func (s *apiServer) find() error {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return err
	}
	for _, f := range files {
		cmdline, err := os.ReadFile(f)
		args := bytes.Split(bytes.TrimSuffix(cmdline, []byte{0}), []byte{0})
		if err != nil || filepath.Base(string(args[0])) != "kube-apiserver" {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f)))
		if err != nil || parent(pid) != os.Getpid() {
			continue
		}
		for _, a := range args {
			s.args = append(s.args, string(a))
		}
		s.process, err = os.FindProcess(pid)
		return err
	}
	return fmt.Errorf("no kube-apiserver among the children of process %d", os.Getpid())
}

// parent is the fourth field of a process's stat; its second is a name in parentheses.
func parent(pid int) int {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return -1
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return -1
	}
	n, err := strconv.Atoi(string(fields[1]))
	if err != nil {
		return -1
	}
	return n
}

func (s *apiServer) signal(sig syscall.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process.Signal(sig)
}

// kill kills it; restart starts it again.
func (s *apiServer) kill() error {
	if err := s.signal(syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill the API server: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.again != nil {
		_ = s.again.Wait() // killed, as wanted
		s.again = nil
	}
	return nil
}

func (s *apiServer) restart() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	cmd := exec.Command(s.args[0], s.args[1:]...)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the API server: %w", err)
	}
	s.again, s.process = cmd, cmd.Process
	return nil
}

func (s *apiServer) stop() {
	s.mu.Lock()
	again := s.again
	s.mu.Unlock()
	if again != nil {
		_ = s.kill()
	}
	_ = s.env.Stop()
}
