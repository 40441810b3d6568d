package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
)

// withdrawTimeout bounds taking the request back, also after an interrupt.
const withdrawTimeout = 10 * time.Second

type promoteOptions struct {
	*base
	timeout time.Duration
}

func promoteCommand(b *base) *cobra.Command {
	o := promoteOptions{base: b}
	c := &cobra.Command{
		Use:   "promote NAME REPLICA",
		Short: "Let another in-sync replica lead",
		Long: `Let another in-sync replica lead: the present leader hands over once the other has all that
was written, and no record is lost. The replica is named by its id or by its pod.

The request is the annotation ` + v1alpha1.AnnotationPromote + `, which is removed at the end, also when
the leader has not changed.`,
		Example:           "  kubectl tidemark promote orders 2\n  kubectl tidemark promote orders orders-2",
		ValidArgsFunction: b.completePromotion,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return errors.New("name a partition and the replica that is to lead, as in: promote orders 2")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return o.run(c.Context(), args[0], args[1]) },
	}
	c.Flags().DurationVar(&o.timeout, "timeout", time.Minute, "how long to wait for the new leader")
	return c
}

func (o *promoteOptions) run(ctx context.Context, name, replica string) error {
	c, err := o.connect()
	if err != nil {
		return err
	}
	rp, err := c.partition(ctx, name)
	if err != nil {
		return err
	}
	to, err := successor(rp, replica)
	if err != nil {
		return err
	}
	if to.Name == rp.Status.Leader {
		fmt.Fprintf(o.Out, "%s leads already, in epoch %d\n", to.Name, rp.Status.LeaderEpoch)
		return nil
	}
	begun := time.Now()
	request := fmt.Sprintf("%d/%d", rp.Status.LeaderEpoch, to.ID)
	if err := c.annotate(ctx, name, v1alpha1.AnnotationPromote, &request); err != nil {
		return fmt.Errorf("ask for the promotion of %s: %w", to.Name, err)
	}
	now, err := o.await(ctx, c, rp, to)
	taken := time.Since(begun)
	if werr := o.withdraw(ctx, c, name, request); werr != nil {
		err = errors.Join(err, werr)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "%s leads in epoch %d, after %s in epoch %d; it took %s\n", to.Name, now.Status.LeaderEpoch, rp.Status.Leader, rp.Status.LeaderEpoch, taken.Round(time.Millisecond))
	return nil
}

// successor finds the replica, and says why it cannot lead as far as status tells. What has
// changed since is the operator's to refuse.
func successor(rp *v1alpha1.ReplicatedPartition, replica string) (v1alpha1.ReplicaStatus, error) {
	to, err := findReplica(rp, replica)
	preferred := rp.Spec.LeaderElection.PreferredLeader
	pending, asked, badRequest := rp.PromoteRequest()
	switch s := rp.Status; {
	case err != nil:
		return to, err
	case to.Name == s.Leader:
		return to, nil
	case s.Leader == "":
		return to, fmt.Errorf("nobody leads %s, so nobody can hand over: kubectl tidemark status %s says why", rp.Name, rp.Name)
	case !to.InSync:
		return to, fmt.Errorf("%s is not in sync (%s, lag %s): it can lead once it has caught up", to.Name, orUnknown(string(to.Role)), number(to.Lag))
	case preferred != nil && *preferred != to.ID:
		return to, fmt.Errorf("spec.leaderElection.preferredLeader is %d, and would take the leadership back: change that instead", *preferred)
	case asked && badRequest == nil && pending.LeaderEpoch == s.LeaderEpoch && pending.Replica != to.ID:
		return to, fmt.Errorf("somebody has asked for replica %d: wait for it, or remove the annotation %s", pending.Replica, v1alpha1.AnnotationPromote)
	}
	return to, nil
}

// findReplica reads an id or a pod's name.
func findReplica(rp *v1alpha1.ReplicatedPartition, text string) (v1alpha1.ReplicaStatus, error) {
	id, err := strconv.ParseInt(text, 10, 32)
	var names []string
	for _, r := range rp.Status.Replicas {
		if r.Name == text || err == nil && int64(r.ID) == id {
			return r, nil
		}
		names = append(names, r.Name)
	}
	return v1alpha1.ReplicaStatus{}, fmt.Errorf("%s has no replica %q; it has %v", rp.Name, text, names)
}

// await waits until the replica leads, or the operator refuses.
func (o *promoteOptions) await(ctx context.Context, c *cluster, before *v1alpha1.ReplicatedPartition, to v1alpha1.ReplicaStatus) (*v1alpha1.ReplicatedPartition, error) {
	within, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	last := before
	for {
		now, err := c.changes(within, before.Name, func(rp *v1alpha1.ReplicatedPartition) (bool, error) {
			last = rp
			return promoted(before, rp, to)
		})
		if now != nil {
			return now, err
		}
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case within.Err() != nil:
			return nil, fmt.Errorf("%s does not lead after %s; %s", to.Name, o.timeout, progress(last))
		case err != nil:
			return nil, err
		}
	}
}

// promoted judges a newer state of the partition.
func promoted(before, now *v1alpha1.ReplicatedPartition, to v1alpha1.ReplicaStatus) (bool, error) {
	s := now.Status
	p := condition(now, v1alpha1.ConditionProgressing)
	switch {
	case now.UID != before.UID:
		return true, errors.New("the partition was deleted and made anew meanwhile")
	case s.LeaderEpoch > before.Status.LeaderEpoch && s.Leader == to.Name:
		return true, nil
	case s.LeaderEpoch > before.Status.LeaderEpoch && s.Leader != "":
		return true, fmt.Errorf("%s was elected instead, in epoch %d (%s): ask again if you still want %s to lead", s.Leader, s.LeaderEpoch, s.LastElection, to.Name)
	case refused(p) && !sameRefusal(condition(before, v1alpha1.ConditionProgressing), p):
		return true, fmt.Errorf("refused: %s", p.Message)
	}
	return false, nil
}

func refused(p *metav1.Condition) bool {
	return p != nil && p.Status == metav1.ConditionFalse && (p.Reason == v1alpha1.ReasonSwitchoverRefused || p.Reason == v1alpha1.ReasonRequestInvalid)
}

// sameRefusal: what stood there before this request does not speak of it.
func sameRefusal(before, now *metav1.Condition) bool {
	return refused(before) && before.Reason == now.Reason && before.Message == now.Message
}

func progress(rp *v1alpha1.ReplicatedPartition) string {
	if p := condition(rp, v1alpha1.ConditionProgressing); p != nil {
		return fmt.Sprintf("Progressing is %s (%s): %s", p.Status, p.Reason, p.Message)
	}
	return "the operator says nothing about it: is it running?"
}

// withdraw removes the request, unless somebody has put another in its place.
func (o *promoteOptions) withdraw(ctx context.Context, c *cluster, name, request string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawTimeout)
	defer cancel()
	rp, err := c.partition(ctx, name)
	if err == nil && rp.Annotations[v1alpha1.AnnotationPromote] == request {
		err = c.annotate(ctx, name, v1alpha1.AnnotationPromote, nil)
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove the annotation %s (it does nothing once the epoch has changed): %w", v1alpha1.AnnotationPromote, err)
	}
	return nil
}

// annotate sets an annotation of a partition, or removes it.
func (c *cluster) annotate(ctx context.Context, name, key string, value *string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]*string{key: value}}})
	if err != nil {
		return err
	}
	rp := &v1alpha1.ReplicatedPartition{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: name}}
	return c.api.Patch(ctx, rp, client.RawPatch(types.MergePatchType, patch), client.FieldOwner("kubectl-tidemark"))
}

// changes calls f with a partition as it is, and then as it becomes, until f is content or
// the watch ends, which returns nil.
func (c *cluster) changes(ctx context.Context, name string, f func(*v1alpha1.ReplicatedPartition) (bool, error)) (*v1alpha1.ReplicatedPartition, error) {
	rp, err := c.partition(ctx, name)
	if err != nil {
		return nil, err
	}
	if done, err := f(rp); done {
		return rp, err
	}
	w, err := c.api.Watch(ctx, &v1alpha1.ReplicatedPartitionList{}, client.InNamespace(c.namespace),
		&client.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name), Raw: &metav1.ListOptions{ResourceVersion: rp.ResourceVersion}})
	if err != nil {
		return nil, fmt.Errorf("watch ReplicatedPartition %s: %w", name, err)
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		rp, ok := e.Object.(*v1alpha1.ReplicatedPartition)
		if !ok {
			return nil, nil
		}
		if done, err := f(rp); done {
			return rp, err
		}
	}
	return nil, nil
}
