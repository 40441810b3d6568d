package plugin

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/internal/plugin/forward"
)

// resourceName of ReplicatedPartitions in paths and errors.
const resourceName = "replicatedpartitions"

// cluster is the API server, and the namespace that the command line is about.
type cluster struct {
	config    *rest.Config
	namespace string
	api       client.WithWatch
	core      typedcorev1.CoreV1Interface
}

func (b *base) connect() (*cluster, error) {
	loader := b.flags.ToRawKubeConfigLoader()
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, err
	}
	config, err := b.flags.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	// Deprecations of what other programs have written are not this command's news.
	config.WarningHandler = rest.NoWarnings{}
	scheme, mapper, err := kinds()
	if err != nil {
		return nil, err
	}
	api, err := client.NewWithWatch(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("make a client of the API server: %w", err)
	}
	core, err := typedcorev1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of the API server: %w", err)
	}
	return &cluster{config: config, namespace: namespace, api: api, core: core}, nil
}

// kinds are those that the plugin reads. It knows their resources, and so asks the server
// for none of its lists of APIs.
func kinds() (*runtime.Scheme, meta.RESTMapper, error) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, coordinationv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			return nil, nil, err
		}
	}
	m := meta.NewDefaultRESTMapper(nil)
	for _, k := range []schema.GroupVersionKind{
		v1alpha1.GroupVersion.WithKind("ReplicatedPartition"), coordinationv1.SchemeGroupVersion.WithKind("Lease"),
		corev1.SchemeGroupVersion.WithKind("Pod"), corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), corev1.SchemeGroupVersion.WithKind("Event"),
	} {
		m.Add(k, meta.RESTScopeNamespace)
	}
	m.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	return s, m, nil
}

func (c *cluster) partition(ctx context.Context, name string) (*v1alpha1.ReplicatedPartition, error) {
	rp := &v1alpha1.ReplicatedPartition{}
	if err := c.api.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: name}, rp); err != nil {
		return nil, fmt.Errorf("read ReplicatedPartition %s in namespace %s: %w", name, c.namespace, err)
	}
	return rp, nil
}

// lease is the object that holds a partition's record.
func (c *cluster) lease(ctx context.Context, rp *v1alpha1.ReplicatedPartition) (*coordinationv1.Lease, error) {
	l := &coordinationv1.Lease{}
	if err := c.api.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: rp.LeaseName()}, l); err != nil {
		return nil, fmt.Errorf("read the partition record, Lease %s in namespace %s: %w", rp.LeaseName(), c.namespace, err)
	}
	return l, nil
}

// pods of a partition.
func (c *cluster) pods(ctx context.Context, rp *v1alpha1.ReplicatedPartition) ([]corev1.Pod, error) {
	var l corev1.PodList
	if err := c.api.List(ctx, &l, client.InNamespace(c.namespace), childrenOf(rp)); err != nil {
		return nil, fmt.Errorf("list the pods of %s: %w", rp.Name, err)
	}
	return l.Items, nil
}

func childrenOf(rp *v1alpha1.ReplicatedPartition) client.MatchingLabels {
	return client.MatchingLabels{v1alpha1.LabelName: v1alpha1.AppName, v1alpha1.LabelPartition: rp.Name}
}

func (c *cluster) dialer() *forward.Dialer {
	return &forward.Dialer{Config: c.config, Pods: c.core.RESTClient()}
}
