package controllers

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
)

// Within a namespace a topic name means one log: two would be told apart only by the address
// that a client happens to bootstrap from, and a copied manifest would take half of the
// records. Of two partitions with one topic, the one that is there first is served; the other
// is not started until the first is gone. Both go on if both have begun, as by two operators
// at once: nothing that serves is stopped for this.

// topicIndex is the index by namespace and topic.
const topicIndex = "topic"

func indexTopic(obj client.Object) []string {
	if rp, ok := obj.(*v1alpha1.ReplicatedPartition); ok {
		return []string{rp.EffectiveTopic()}
	}
	return nil
}

// topicHolder is the partition that has the topic of rp, which is new; "" if that is free.
func (r *Reconciler) topicHolder(ctx context.Context, rp *v1alpha1.ReplicatedPartition) (string, error) {
	var list v1alpha1.ReplicatedPartitionList
	opts := []client.ListOption{client.InNamespace(rp.Namespace)}
	if r.indexed {
		opts = append(opts, client.MatchingFields{topicIndex: rp.EffectiveTopic()})
	}
	if err := r.Client.List(ctx, &list, opts...); err != nil {
		return "", fmt.Errorf("list the partitions of namespace %s: %w", rp.Namespace, err)
	}
	for i := range list.Items {
		q := &list.Items[i]
		if q.UID != rp.UID && q.EffectiveTopic() == rp.EffectiveTopic() && comesFirst(q, rp) {
			return q.Name, nil
		}
	}
	return "", nil
}

// comesFirst tells whether q has the right to a topic before rp, which has no record.
func comesFirst(q, rp *v1alpha1.ReplicatedPartition) bool {
	switch {
	case q.Status.TopicID != "":
		return true
	case !q.CreationTimestamp.Equal(&rp.CreationTimestamp):
		return q.CreationTimestamp.Before(&rp.CreationTimestamp)
	}
	return q.UID < rp.UID
}

// tellTopicTaken is the whole story for the user.
func (o *Observation) tellTopicTaken() string {
	return fmt.Sprintf("the topic %s is that of the ReplicatedPartition %s in namespace %s, so this one is not started: delete one of the two, give this one another spec.topic by making it anew, or make it in another namespace",
		o.Partition.EffectiveTopic(), o.TopicHolder, o.Partition.Namespace)
}
