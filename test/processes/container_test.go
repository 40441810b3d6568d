package processes

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidemark-io/tidemark/test/network"
)

// container is the one container of a pod.
type container struct {
	kubelet *kubelet
	pod     *corev1.Pod
	name    string
	ip      string
	volume  string        // a directory
	host    *network.Link // nil without a network
	changed chan struct{} // wakes the report

	mu      sync.Mutex
	process *os.Process // nil while none runs
	exit    *int32      // of the last process, nil before
	ended   bool        // it is not started again
	done    bool        // and nothing is left of it
	zombie  bool        // its pod is gone, and nobody has told it
	dark    bool        // its node is off: nobody tells the API server anything
	starts  int32
	ready   bool
	between []func()      // done before the next start
	free    chan struct{} // closed when it may start again
	grace   *time.Timer   // of its deletion
}

func (c *container) signal(s syscall.Signal) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.process != nil && c.process.Signal(s) == nil
}

// end ends it for good.
func (c *container) end(s syscall.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	if c.process != nil {
		_ = c.process.Signal(s)
	}
}

// terminate ends it within the grace period.
func (c *container) terminate(k *kubelet) {
	c.mu.Lock()
	first := c.grace == nil
	if first {
		c.grace = time.AfterFunc(gracePeriod, func() { c.end(syscall.SIGKILL) })
	}
	c.mu.Unlock()
	if first {
		c.end(syscall.SIGTERM)
	}
}

func (c *container) over() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.done
}

func (c *container) isReady() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ready
}

func (c *container) forgotten() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.zombie
}

// forget makes it one that its kubelet does not end when the pod is gone.
func (c *container) forget(yes bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.zombie = yes
}

// leaving tells whether its pod is deleted or about to be gone.
func (c *container) leaving() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

// crash kills the process, and has something done before it starts again. It does not start before resume is called.
func (c *container) crash(meanwhile func()) (resume func()) {
	free := make(chan struct{})
	c.mu.Lock()
	c.free = free
	if meanwhile != nil {
		c.between = append(c.between, meanwhile)
	}
	c.mu.Unlock()
	c.signal(syscall.SIGKILL)
	return sync.OnceFunc(func() { close(free) })
}

// goDark keeps the API server from hearing about this container until light is called.
func (c *container) goDark() (light func()) {
	set := func(to bool) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.dark = to
	}
	set(true)
	return func() { set(false); c.wake() }
}

func (c *container) wake() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

func (c *container) witnessDir() string {
	return filepath.Join("/dev/shm", "tidemark-test-"+string(c.pod.UID))
}

// live is the life of a pod: its container is started until the pod is deleted.
func (c *container) live(ctx context.Context) {
	k := c.kubelet
	defer c.leave(ctx)
	reporting, stop := context.WithCancel(ctx)
	defer stop()
	if !c.bind(ctx) {
		return
	}
	k.done.Go(func() { c.report(reporting) })
	for c.prepare(ctx) {
		if err := os.MkdirAll(c.witnessDir(), 0o700); err != nil {
			k.t.Error(err)
			return
		}
		cmd, err := c.start()
		if err != nil {
			k.t.Errorf("start %s: %v", c.name, err)
			return
		}
		if cmd == nil {
			return
		}
		c.wake()
		probing, stopProbing := context.WithCancel(ctx)
		k.done.Go(func() { c.probe(probing) })
		_ = cmd.Wait() // the exit code is told to the API server
		stopProbing()
		code := int32(cmd.ProcessState.ExitCode())
		c.mu.Lock()
		c.process, c.ready, c.exit = nil, false, &code
		c.mu.Unlock()
		c.wake()
	}
}

// bind gives the pod a node, as a scheduler does: the API server deletes a pod without one at once, whatever its grace
// period. It reports whether the pod is still there.
func (c *container) bind(ctx context.Context) bool {
	if c.pod.Spec.NodeName != "" {
		return true
	}
	ticker := time.NewTicker(kubeletPeriod)
	defer ticker.Stop()
	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.pod.Namespace, Name: c.name, UID: c.pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: "node-of-" + c.name},
	}
	for {
		err := c.kubelet.client.CoreV1().Pods(c.pod.Namespace).Bind(ctx, binding, metav1.CreateOptions{})
		// A conflict tells that an earlier try did it although it seemed to fail.
		if err == nil || apierrors.IsConflict(err) {
			return true
		}
		if ctx.Err() != nil || c.leaving() || apierrors.IsNotFound(err) {
			return false
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// prepare does what is to be done between two processes, and reports whether there is to be a next one.
func (c *container) prepare(ctx context.Context) bool {
	for {
		c.mu.Lock()
		free, todo := c.free, c.between
		c.between = nil
		c.mu.Unlock()
		for _, f := range todo {
			f()
		}
		if len(todo) > 0 {
			continue
		}
		if !c.allowed(ctx, free) {
			return false
		}
		c.mu.Lock()
		settled := c.free == free && len(c.between) == 0
		c.mu.Unlock()
		if settled {
			return true
		}
	}
}

// allowed waits for the leave to start; there is none any more when the pod is deleted meanwhile.
func (c *container) allowed(ctx context.Context, free chan struct{}) bool {
	ticker := time.NewTicker(kubeletPeriod)
	defer ticker.Stop()
	for {
		c.mu.Lock()
		ended := c.ended
		c.mu.Unlock()
		if ended {
			return false
		}
		select {
		case <-free:
			return ctx.Err() == nil
		case <-ctx.Done():
			return false
		case <-ticker.C:
		}
	}
}

// start starts the process, unless the pod has been deleted.
func (c *container) start() (*exec.Cmd, error) {
	cmd, err := c.command()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return nil, nil
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c.process = cmd.Process
	c.starts++
	return cmd, nil
}

// leave clears up behind a container that has ended.
func (c *container) leave(ctx context.Context) {
	c.mu.Lock()
	c.done = true
	if c.grace != nil {
		c.grace.Stop()
	}
	c.mu.Unlock()
	_ = os.RemoveAll(c.witnessDir())
	c.kubelet.remove(context.WithoutCancel(ctx), c.pod)
	if c.host != nil {
		if err := c.host.Remove(); err != nil {
			c.kubelet.t.Error(err)
		}
	}
}

// command is what the pod says, with this machine's paths.
func (c *container) command() (*exec.Cmd, error) {
	spec := c.pod.Spec.Containers[0]
	if err := os.MkdirAll(c.volume, 0o755); err != nil {
		return nil, err
	}
	args := make([]string, 0, len(spec.Args)+4)
	for _, a := range spec.Args {
		name, _, _ := strings.Cut(a, "=")
		switch name {
		case "--data-dir":
			a = "--data-dir=" + c.volume
		case "--witness-dir":
			a = "--witness-dir=" + c.witnessDir()
		}
		args = append(args, a)
	}
	kubeconfig, err := c.kubelet.kubeconfig(c.pod.Spec.ServiceAccountName)
	if err != nil {
		return nil, err
	}
	cmd := env.command(c.host, "replica", append(args, "--kubeconfig="+kubeconfig, "--listen-host="+c.ip, "--log-format=text")...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	for _, e := range spec.Env {
		value := e.Value
		if e.ValueFrom != nil {
			switch e.ValueFrom.FieldRef.FieldPath {
			case "metadata.name":
				value = c.name
			case "metadata.uid":
				value = string(c.pod.UID)
			case "status.podIP":
				value = c.ip
			}
		}
		cmd.Env = append(cmd.Env, e.Name+"="+value)
	}
	out, err := os.OpenFile(filepath.Join(c.kubelet.logs, c.name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = out, out
	return cmd, nil
}
