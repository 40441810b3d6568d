package selftest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
)

// label is on what this package makes; only what carries it is ever deleted.
const label = "tidemark.io/selftest"

// lookEvery is how often an object that something is awaited of is read.
const lookEvery = 500 * time.Millisecond

// parse turns the words of Config into a partition.
func (c Config) parse() (*v1alpha1.ReplicatedPartition, error) {
	size, err := resource.ParseQuantity(c.StorageSize)
	if err != nil {
		return nil, fmt.Errorf("the storage size %q: %w", c.StorageSize, err)
	}
	rp := &v1alpha1.ReplicatedPartition{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name, Labels: map[string]string{label: "true"}},
		Spec: v1alpha1.ReplicatedPartitionSpec{
			Replicas: c.Replicas, Storage: v1alpha1.StorageSpec{Size: size},
			PersistentVolumeClaimRetentionPolicy: v1alpha1.RetentionPolicy{WhenDeleted: v1alpha1.DeleteVolume},
		},
	}
	if c.StorageClassName != "" {
		rp.Spec.Storage.StorageClassName = &c.StorageClassName
	}
	return rp, nil
}

// create makes the partition, in place of one that an earlier run has left.
func create(ctx context.Context, api client.Client, rp *v1alpha1.ReplicatedPartition) error {
	old := &v1alpha1.ReplicatedPartition{}
	switch err := api.Get(ctx, client.ObjectKeyFromObject(rp), old); {
	case apierrors.IsNotFound(err):
	case err != nil:
		return fmt.Errorf("look for %s: %w", rp.Name, err)
	case old.Labels[label] == "":
		return fmt.Errorf("there is a partition %s/%s that is not a test's: choose another name or namespace for the test", rp.Namespace, rp.Name)
	default:
		if err := remove(ctx, api, old); err != nil {
			return err
		}
	}
	if err := api.Create(ctx, rp); err != nil {
		return fmt.Errorf("create the partition %s/%s: %w", rp.Namespace, rp.Name, err)
	}
	return nil
}

// awaitReady waits until the partition is ready, and tells why it is not.
func awaitReady(ctx context.Context, api client.Client, rp *v1alpha1.ReplicatedPartition) error {
	last := "the operator has not looked at it: is it running, and does it watch this namespace?"
	err := poll(ctx, func() (bool, error) {
		if err := api.Get(ctx, client.ObjectKeyFromObject(rp), rp); err != nil {
			return false, err
		}
		if len(rp.Status.Conditions) > 0 {
			last = describe(rp.Status.Conditions)
		}
		ready := meta.FindStatusCondition(rp.Status.Conditions, v1alpha1.ConditionReady)
		return ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == rp.Generation, nil
	})
	if err != nil {
		return fmt.Errorf("%s/%s is not ready: %w; %s", rp.Namespace, rp.Name, err, last)
	}
	return nil
}

func describe(conditions []metav1.Condition) string {
	var out []string
	for _, c := range conditions {
		out = append(out, fmt.Sprintf("%s is %s (%s): %s", c.Type, c.Status, c.Reason, c.Message))
	}
	return strings.Join(out, "; ")
}

// remove deletes that very partition, and waits until it is gone.
func remove(ctx context.Context, api client.Client, rp *v1alpha1.ReplicatedPartition) error {
	err := api.Delete(ctx, rp, client.Preconditions{UID: &rp.UID})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete the partition %s/%s: %w", rp.Namespace, rp.Name, err)
	}
	uid := rp.UID
	err = poll(ctx, func() (bool, error) {
		now := &v1alpha1.ReplicatedPartition{}
		err := api.Get(ctx, client.ObjectKeyFromObject(rp), now)
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return err == nil && now.UID != uid, err
	})
	if err != nil {
		return fmt.Errorf("the partition %s/%s does not go: %w", rp.Namespace, rp.Name, err)
	}
	return nil
}

// poll asks again and again, also after an error, until done or ctx ends.
func poll(ctx context.Context, done func() (bool, error)) error {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		ok, err := done()
		if ok {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		}
	}
}
