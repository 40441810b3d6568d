package processes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const (
	// kubeletPeriod is how often the kubelet looks, tells and probes.
	kubeletPeriod = 100 * time.Millisecond
	// gracePeriod is how long a process of a deleted pod may take to end: less than a pod says, so that a process
	// that stands still does not hold a test up.
	gracePeriod = 12 * time.Second
)

// kubelet stands in for scheduler, kubelet and volume controller. It lists and
// compares, so that an API server that was away for a while costs it nothing. Pods
// get a host each, or a loopback address on a machine without network namespaces.
type kubelet struct {
	t         *testing.T
	client    kubernetes.Interface
	namespace string
	volumes   string // a directory for each claim
	logs      string

	mu       sync.Mutex
	pods     map[types.UID]*container
	attached map[string]string // the directory of a claim that has moved
	accounts map[string]string // the kubeconfig of a service account
	done     sync.WaitGroup
}

func newKubelet(t *testing.T, namespace string) *kubelet {
	return &kubelet{t: t, client: env.clientset, namespace: namespace, volumes: t.TempDir(), logs: t.TempDir(), pods: map[types.UID]*container{}, attached: map[string]string{}, accounts: map[string]string{}}
}

// kubeconfig makes, once, the one with which the pods of a service account work: they may do
// what its roles say and no more.
func (k *kubelet) kubeconfig(account string) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if path, ok := k.accounts[account]; ok {
		return path, nil
	}
	user, err := env.server.env.AddUser(envtest.User{Name: "system:serviceaccount:" + k.namespace + ":" + account}, nil)
	if err != nil {
		return "", err
	}
	text, err := user.KubeConfig()
	if err != nil {
		return "", err
	}
	path := filepath.Join(k.logs, account+".kubeconfig")
	k.accounts[account] = path
	return path, os.WriteFile(path, text, 0o600)
}

// run looks after pods until ctx ends, and then kills what still runs.
func (k *kubelet) run(ctx context.Context) {
	ticker := time.NewTicker(kubeletPeriod)
	defer ticker.Stop()
	for ctx.Err() == nil {
		if pods, err := k.client.CoreV1().Pods(k.namespace).List(ctx, metav1.ListOptions{}); err == nil {
			k.see(ctx, pods.Items)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
	k.mu.Lock()
	for _, c := range k.pods {
		c.end(syscall.SIGKILL)
	}
	k.mu.Unlock()
	k.done.Wait()
}

// see starts the containers of new pods, and ends those of deleted ones.
func (k *kubelet) see(ctx context.Context, pods []corev1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	present := map[types.UID]bool{}
	for i := range pods {
		p := &pods[i]
		present[p.UID] = true
		c, known := k.pods[p.UID]
		switch {
		case p.DeletionTimestamp != nil && known && !c.over():
			c.terminate(k)
		case p.DeletionTimestamp != nil:
			k.remove(ctx, p) // once more, if the API server was away when its container ended
		case !known:
			k.begin(ctx, p)
		}
	}
	for uid, c := range k.pods {
		if !present[uid] && !c.forgotten() {
			c.end(syscall.SIGKILL)
		}
	}
}

// begin gives a pod its host and its container.
func (k *kubelet) begin(ctx context.Context, p *corev1.Pod) {
	c := &container{kubelet: k, pod: p, name: p.Name, ip: fmt.Sprintf("127.0.77.%d", 10+len(k.pods)), changed: make(chan struct{}, 1), free: make(chan struct{})}
	close(c.free)
	claim := p.Spec.Volumes[0].PersistentVolumeClaim.ClaimName
	if c.volume = k.attached[claim]; c.volume == "" {
		c.volume = filepath.Join(k.volumes, claim)
	}
	host, err := env.join()
	if err != nil {
		k.t.Errorf("a host for %s: %v", p.Name, err)
		return
	}
	if c.host = host; host != nil {
		c.ip = host.Address
	}
	k.pods[p.UID] = c
	k.done.Go(func() { c.live(ctx) })
}

// remove takes a pod that has ended out of the API.
func (k *kubelet) remove(ctx context.Context, p *corev1.Pod) {
	err := k.client.CoreV1().Pods(k.namespace).Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0), Preconditions: &metav1.Preconditions{UID: &p.UID}})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && ctx.Err() == nil {
		k.t.Logf("remove pod %s: %v", p.Name, err) // it is listed again, and removed then
	}
}

// containers are those that have not ended and belong to a pod, by name.
func (k *kubelet) containers() []*container {
	k.mu.Lock()
	defer k.mu.Unlock()
	var cs []*container
	for _, c := range k.pods {
		if !c.over() && !c.forgotten() {
			cs = append(cs, c)
		}
	}
	slices.SortFunc(cs, func(a, b *container) int { return strings.Compare(a.name, b.name) })
	return cs
}

// container is that of the named pod, nil if there is none.
func (k *kubelet) container(pod string) *container {
	for _, c := range k.containers() {
		if c.name == pod {
			return c
		}
	}
	return nil
}

// kill kills the process of a replica as kill -9 does, and reports whether one ran.
func (k *kubelet) kill(pod string) bool {
	c := k.container(pod)
	return c != nil && c.signal(syscall.SIGKILL)
}

// move lets the next pod with the container's claim have a copy of the volume as it is now, unless back is called. The
// process must stand still.
func (k *kubelet) move(c *container) (back func(), err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	claim := c.pod.Spec.Volumes[0].PersistentVolumeClaim.ClaimName
	to := filepath.Join(k.volumes, claim+"-left-"+string(c.pod.UID))
	if err := os.CopyFS(to, os.DirFS(c.volume)); err != nil {
		return nil, errors.Join(fmt.Errorf("copy the volume of %s: %w", c.name, err), os.RemoveAll(to))
	}
	k.attached[claim] = to
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.attached[claim] = c.volume
		_ = os.RemoveAll(to) // nobody uses it
	}, nil
}
