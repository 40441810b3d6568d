package processes

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

// kubelet stands in for scheduler, kubelet and volume controller. Pods get loopback
// addresses of their own, so that every one of them may use the usual ports.
type kubelet struct {
	t          *testing.T
	client     kubernetes.Interface
	namespace  string
	kubeconfig string
	binary     string // the replica
	volumes    string // a directory for each claim
	logs       string

	mu   sync.Mutex
	pods map[types.UID]*container
	done sync.WaitGroup
}

// container is the one container of a pod.
type container struct {
	name    string
	ip      string
	mu      sync.Mutex
	process *os.Process // nil while none runs
	ended   bool        // it is not started again
	starts  int32
	ready   bool
}

func (c *container) signal(s syscall.Signal) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.process != nil && c.process.Signal(s) == nil
}

// run watches pods until ctx ends, and then kills what still runs.
func (k *kubelet) run(ctx context.Context) {
	for ctx.Err() == nil {
		w, err := k.client.CoreV1().Pods(k.namespace).Watch(ctx, metav1.ListOptions{})
		if err != nil {
			continue
		}
		for e := range w.ResultChan() {
			if p, ok := e.Object.(*corev1.Pod); ok && e.Type != watch.Deleted {
				k.see(ctx, p)
			}
		}
	}
	k.mu.Lock()
	for _, c := range k.pods {
		c.end(syscall.SIGKILL)
	}
	k.mu.Unlock()
	k.done.Wait()
}

// see starts the container of a new pod, and ends that of a deleted one.
func (k *kubelet) see(ctx context.Context, p *corev1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	c, known := k.pods[p.UID]
	switch {
	case p.DeletionTimestamp != nil && known:
		c.end(syscall.SIGTERM)
	case p.DeletionTimestamp != nil:
		k.remove(ctx, p)
	case !known:
		c = &container{name: p.Name, ip: fmt.Sprintf("127.0.77.%d", 10+len(k.pods))}
		k.pods[p.UID] = c
		k.done.Go(func() { k.live(ctx, p, c) })
	}
}

func (c *container) end(s syscall.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	if c.process != nil {
		_ = c.process.Signal(s)
	}
}

// live is the life of a pod: its container is started until the pod is deleted.
func (k *kubelet) live(ctx context.Context, p *corev1.Pod, c *container) {
	witness, err := os.MkdirTemp("/dev/shm", "tidemark-test-")
	if err != nil {
		k.t.Error(err)
		return
	}
	defer os.RemoveAll(witness)
	for ctx.Err() == nil {
		cmd, err := k.command(p, c, witness)
		if err != nil {
			k.t.Error(err)
			return
		}
		c.mu.Lock()
		if c.ended {
			c.mu.Unlock()
			break
		}
		if err := cmd.Start(); err != nil {
			c.mu.Unlock()
			k.t.Errorf("start %s: %v", c.name, err)
			return
		}
		c.process = cmd.Process
		c.starts++
		c.mu.Unlock()
		probing, stop := context.WithCancel(ctx)
		k.report(ctx, p, c, corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}})
		k.done.Go(func() { k.probe(probing, p, c) })
		err = cmd.Wait()
		stop()
		c.mu.Lock()
		c.process, c.ready = nil, false
		c.mu.Unlock()
		k.report(ctx, p, c, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: int32(cmd.ProcessState.ExitCode()), Reason: fmt.Sprint(err)}})
	}
	k.remove(context.WithoutCancel(ctx), p)
}

func (k *kubelet) remove(ctx context.Context, p *corev1.Pod) {
	err := k.client.CoreV1().Pods(k.namespace).Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0), Preconditions: &metav1.Preconditions{UID: &p.UID}})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && ctx.Err() == nil {
		k.t.Logf("remove pod %s: %v", p.Name, err)
	}
}

// command is what the pod says, with this machine's paths.
func (k *kubelet) command(p *corev1.Pod, c *container, witness string) (*exec.Cmd, error) {
	spec := p.Spec.Containers[0]
	claim := p.Spec.Volumes[0].PersistentVolumeClaim.ClaimName
	volume := filepath.Join(k.volumes, claim)
	if err := os.MkdirAll(volume, 0o755); err != nil {
		return nil, err
	}
	args := make([]string, 0, len(spec.Args)+4)
	for _, a := range spec.Args {
		name, _, _ := strings.Cut(a, "=")
		switch name {
		case "--data-dir":
			a = "--data-dir=" + volume
		case "--witness-dir":
			a = "--witness-dir=" + witness
		}
		args = append(args, a)
	}
	cmd := exec.Command(k.binary, append(args, "--kubeconfig="+k.kubeconfig, "--listen-host="+c.ip, "--log-format=text")...)
	for _, e := range spec.Env {
		value := e.Value
		if e.ValueFrom != nil {
			switch e.ValueFrom.FieldRef.FieldPath {
			case "metadata.name":
				value = p.Name
			case "metadata.uid":
				value = string(p.UID)
			case "status.podIP":
				value = c.ip
			}
		}
		cmd.Env = append(cmd.Env, e.Name+"="+value)
	}
	out, err := os.OpenFile(filepath.Join(k.logs, p.Name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = out, out
	return cmd, nil
}

// probe asks for readiness until ctx ends.
func (k *kubelet) probe(ctx context.Context, p *corev1.Pod, c *container) {
	client := http.Client{Timeout: time.Second}
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		resp, err := client.Get("http://" + c.ip + ":8080/readyz")
		ready := err == nil && resp.StatusCode == http.StatusOK
		if err == nil {
			resp.Body.Close()
		}
		c.mu.Lock()
		changed := ready != c.ready && c.process != nil
		if changed {
			c.ready = ready
		}
		c.mu.Unlock()
		if changed {
			k.report(ctx, p, c, corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}})
		}
	}
}

// report writes the pod's status as a kubelet does.
func (k *kubelet) report(ctx context.Context, p *corev1.Pod, c *container, state corev1.ContainerState) {
	c.mu.Lock()
	ready, restarts := c.ready && state.Running != nil, c.starts-1
	c.mu.Unlock()
	fresh, err := k.client.CoreV1().Pods(k.namespace).Get(ctx, p.Name, metav1.GetOptions{})
	if err != nil || fresh.UID != p.UID {
		return
	}
	fresh.Status.Phase = corev1.PodRunning
	fresh.Status.PodIP, fresh.Status.PodIPs = c.ip, []corev1.PodIP{{IP: c.ip}}
	condition := corev1.ConditionFalse
	if ready {
		condition = corev1.ConditionTrue
	}
	fresh.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodReady, Status: condition, LastTransitionTime: metav1.Now()},
		{Type: corev1.ContainersReady, Status: condition, LastTransitionTime: metav1.Now()},
		{Type: corev1.PodInitialized, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()},
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()},
	}
	fresh.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: p.Spec.Containers[0].Name, Ready: ready, RestartCount: restarts, State: state,
		Started: ptr.To(state.Running != nil), Image: p.Spec.Containers[0].Image}}
	if _, err := k.client.CoreV1().Pods(k.namespace).UpdateStatus(ctx, fresh, metav1.UpdateOptions{}); err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) {
		k.t.Logf("report %s: %v", p.Name, err)
	}
}

// kill kills the process of a replica as kill -9 does, and reports whether one ran.
func (k *kubelet) kill(pod string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range k.pods {
		if c.name == pod && c.signal(syscall.SIGKILL) {
			return true
		}
	}
	return false
}
