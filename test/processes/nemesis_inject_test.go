package processes

import (
	"context"
	"fmt"
	"syscall"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/test/nemesis"
	"github.com/tidemark-io/tidemark/test/network"
)

// carryOut makes a fault happen and says what it struck, and how it is healed if it lasts. It returns errPassed if
// the fault makes no sense at present.
func (r *storm) carryOut(f nemesis.Fault) (on string, heal func() error, err error) {
	switch f.Kind {
	case nemesis.KillAPI, nemesis.PauseAPI:
		heal, err = r.hitAPI(f)
		return "the API server", heal, err
	case nemesis.KillOperator, nemesis.PauseOperator, nemesis.SecondOperator, nemesis.CutOperator:
		heal, err = r.hitOperator(f)
		return "the operator", heal, err
	case nemesis.Scale, nemesis.MinISR:
		return "the spec", nil, r.change(f)
	}
	c, err := r.target(f)
	if err != nil {
		return "", nil, err
	}
	switch f.Kind {
	case nemesis.Unplug, nemesis.CutAPI, nemesis.CutPeers, nemesis.CutClients, nemesis.CutPair, nemesis.Lossy, nemesis.Slow:
		heal, err = r.hitNetwork(f, c)
	case nemesis.DeletePod, nemesis.ForceDelete:
		err = r.deletePod(f, c)
	case nemesis.Zombie:
		heal, err = r.zombie(f, c)
	default:
		heal, err = r.hitProcess(f, c)
	}
	return c.name, heal, err
}

func (r *storm) hitProcess(f nemesis.Fault, c *container) (heal func() error, err error) {
	switch f.Kind {
	case nemesis.Kill:
		c.crash(nil)()
	case nemesis.Hold:
		return nothingFails(c.crash(nil)), nil
	case nemesis.Pause, nemesis.LongPause:
		if !c.signal(syscall.SIGSTOP) {
			return nil, fmt.Errorf("no process: %w", errPassed)
		}
		return nothingFails(func() { c.signal(syscall.SIGCONT) }), nil
	case nemesis.Term:
		if !c.signal(syscall.SIGTERM) {
			return nil, fmt.Errorf("no process: %w", errPassed)
		}
	case nemesis.WitnessLost, nemesis.VolumeLost:
		c.crash(func() { r.lose(f.Kind, c) })()
	case nemesis.PowerCut:
		return r.powerCut(c)
	default:
		return nil, fmt.Errorf("no such fault of a process: %s", f.Kind)
	}
	return nil, nil
}

// powerCut lets the whole node vanish; healing it boots it again.
func (r *storm) powerCut(c *container) (heal func() error, err error) {
	up, err := c.host.Down()
	if err != nil {
		return nil, r.unlessOver(c, err)
	}
	light := c.goDark()
	resume := c.crash(func() { r.lose(nemesis.PowerCut, c) })
	return func() error {
		err := up()
		light()
		resume()
		return r.unlessOver(c, err)
	}, nil
}

func nothingFails(f func()) func() error { return func() error { f(); return nil } }

// unlessOver ignores the failure of what was tried with the host of a container that is gone.
func (r *storm) unlessOver(c *container, err error) error {
	if err != nil && c.leaving() {
		return nil
	}
	return err
}

func (r *storm) hitNetwork(f nemesis.Fault, c *container) (heal func() error, err error) {
	switch f.Kind {
	case nemesis.Unplug:
		heal, err = c.host.Down()
	case nemesis.Slow:
		if r.struck(nemesis.Slow) { // a device has one queue
			return nil, fmt.Errorf("already slow: %w", errPassed)
		}
		heal, err = c.host.Slow(f.Kilobits)
	default:
		var cut network.Cut
		if cut, err = r.cut(f, c); err != nil {
			return nil, err
		}
		heal, err = c.host.Cut(cut)
	}
	if err != nil {
		return nil, r.unlessOver(c, err)
	}
	undo := heal
	return func() error { return r.unlessOver(c, undo()) }, nil
}

func (r *storm) cut(f nemesis.Fault, c *container) (network.Cut, error) {
	cut := network.Cut{Direction: f.Direction}
	switch f.Kind {
	case nemesis.CutAPI:
		cut.Peers = []string{apiAddress}
	case nemesis.CutPeers:
		cut.Port = int(v1alpha1.PortReplication)
	case nemesis.CutClients:
		cut.Port, cut.Peers = int(v1alpha1.PortKafka), []string{network.Home}
	case nemesis.Lossy:
		cut.Percent = f.Percent
	case nemesis.CutPair:
		var others []*container
		for _, o := range r.p.kubelet.containers() {
			if o != c {
				others = append(others, o)
			}
		}
		if len(others) == 0 {
			return cut, fmt.Errorf("no other replica: %w", errPassed)
		}
		cut.Peers = []string{others[f.Other%len(others)].ip}
	default:
		return cut, fmt.Errorf("no such fault of a network: %s", f.Kind)
	}
	return cut, nil
}

func (r *storm) hitAPI(f nemesis.Fault) (heal func() error, err error) {
	if r.struck(nemesis.KillAPI, nemesis.PauseAPI) {
		return nil, fmt.Errorf("the API server is struck already: %w", errPassed)
	}
	if f.Kind == nemesis.KillAPI {
		return env.server.restart, env.server.kill()
	}
	return func() error { return env.server.signal(syscall.SIGCONT) }, env.server.signal(syscall.SIGSTOP)
}

var operatorFaults = []nemesis.Kind{nemesis.KillOperator, nemesis.PauseOperator, nemesis.SecondOperator, nemesis.CutOperator}

func (r *storm) hitOperator(f nemesis.Fault) (heal func() error, err error) {
	if r.struck(operatorFaults...) {
		return nil, fmt.Errorf("the operator is struck already: %w", errPassed)
	}
	if err := env.operator.revive(); err != nil {
		return nil, err
	}
	switch f.Kind {
	case nemesis.KillOperator:
		return env.operator.start, env.operator.kill()
	case nemesis.PauseOperator:
		return func() error { return env.operator.signal(syscall.SIGCONT) }, env.operator.signal(syscall.SIGSTOP)
	case nemesis.CutOperator:
		return env.operator.host.Cut(network.Cut{Direction: f.Direction})
	}
	if r.second == nil {
		if r.second, err = env.newOperator("second-operator"); err != nil {
			return nil, err
		}
	}
	return r.second.kill, r.second.start()
}

// change writes a new number into the spec.
func (r *storm) change(f nemesis.Fault) error {
	ctx, cancel := context.WithTimeout(r.t.Context(), callTimeout)
	defer cancel()
	now, err := r.records.Get(ctx)
	if err != nil {
		return fmt.Errorf("the record cannot be read: %w", errPassed)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.losses.Open(now.Record) {
		return fmt.Errorf("a replica has not come back from a loss: %w", errPassed)
	}
	field := "replicas"
	switch {
	case f.Kind == nemesis.Scale && f.Number < r.minISR, f.Kind == nemesis.MinISR && f.Number > r.replicas:
		return fmt.Errorf("min ISR above replicas: %w", errPassed)
	case f.Kind == nemesis.Scale:
		r.replicas = min(r.replicas, f.Number)
	default:
		field, r.minISR = "minInSyncReplicas", min(r.minISR, f.Number)
	}
	rp := &v1alpha1.ReplicatedPartition{}
	rp.Namespace, rp.Name = r.p.key.Namespace, r.p.key.Name
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{%q:%d}}`, field, f.Number))
	if err := env.api.Patch(r.t.Context(), rp, patch); err != nil {
		// It may still land, so the smaller number counts from now on.
		return fmt.Errorf("the spec cannot be changed, %v: %w", err, errPassed)
	}
	if f.Kind == nemesis.Scale {
		r.replicas = f.Number
	} else {
		r.minISR = f.Number
	}
	return nil
}

func (r *storm) deletePod(f nemesis.Fault, c *container) error {
	// An orderly stop leaves a mark, but it may be broken off by another fault; so it counts as a loss until the new pod has registered.
	if err := r.loseProof(c); err != nil {
		return err
	}
	return r.deleteObject(c, f.Kind == nemesis.ForceDelete)
}

func (r *storm) deleteObject(c *container, force bool) error {
	o := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &c.pod.UID}}
	if force {
		o.GracePeriodSeconds = ptr.To[int64](0)
	}
	if err := env.clientset.CoreV1().Pods(c.pod.Namespace).Delete(r.t.Context(), c.name, o); err != nil {
		return fmt.Errorf("the pod cannot be deleted, %v: %w", err, errPassed)
	}
	return nil
}
