package incluster

import (
	"context"
	"errors"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
)

// client-go finds out that a connection to a vanished API server is dead after 45
// seconds, in which every call fails, also once another API server is there. These
// settings of apimachinery's make that 6, well within a lease.
var http2Health = map[string]string{"HTTP2_READ_IDLE_TIMEOUT_SECONDS": "3", "HTTP2_PING_TIMEOUT_SECONDS": "3"}

// restConfig uses the kubeconfig file if one is named, else the pod's service account.
func restConfig(kubeconfig string) (*rest.Config, error) {
	for name, value := range http2Health {
		if _, set := os.LookupEnv(name); !set {
			if err := os.Setenv(name, value); err != nil {
				return nil, err
			}
		}
	}
	if kubeconfig != "" {
		return clientcmd.BuildConfigFromFlags("", kubeconfig)
	}
	return rest.InClusterConfig()
}

// reader gets single objects, always by a quorum read.
type reader struct {
	pods       rest.Interface
	partitions rest.Interface
	parameters runtime.ParameterCodec // of partitions
}

func newReader(cfg *rest.Config) (*reader, error) {
	pods, _, err := clientFor(cfg, corev1.SchemeGroupVersion, "/api", &corev1.Pod{})
	if err != nil {
		return nil, err
	}
	partitions, parameters, err := clientFor(cfg, v1alpha1.GroupVersion, "/apis", &v1alpha1.ReplicatedPartition{})
	if err != nil {
		return nil, err
	}
	return &reader{pods: pods, partitions: partitions, parameters: parameters}, nil
}

func clientFor(cfg *rest.Config, gv schema.GroupVersion, path string, kinds ...runtime.Object) (rest.Interface, runtime.ParameterCodec, error) {
	s := runtime.NewScheme()
	s.AddKnownTypes(gv, kinds...)
	metav1.AddToGroupVersion(s, gv)
	c := rest.CopyConfig(cfg)
	c.GroupVersion, c.APIPath = &gv, path
	c.NegotiatedSerializer = serializer.NewCodecFactory(s).WithoutConversion()
	c.ContentType, c.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	client, err := rest.RESTClientFor(c)
	if err != nil {
		return nil, nil, fmt.Errorf("make a client for %s: %w", gv, err)
	}
	return client, runtime.NewParameterCodec(s), nil
}

func (r *reader) partition(ctx context.Context, namespace, name string) (*v1alpha1.ReplicatedPartition, error) {
	p := &v1alpha1.ReplicatedPartition{}
	if err := r.partitions.Get().Namespace(namespace).Resource("replicatedpartitions").Name(name).Do(ctx).Into(p); err != nil {
		return nil, fmt.Errorf("read ReplicatedPartition %s/%s: %w", namespace, name, err)
	}
	return p, nil
}

func (r *reader) pod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	p := &corev1.Pod{}
	if err := r.pods.Get().Namespace(namespace).Resource("pods").Name(name).Do(ctx).Into(p); err != nil {
		return nil, fmt.Errorf("read own pod %s/%s: %w", namespace, name, err)
	}
	return p, nil
}

// restarts is the restart count that the pod's status shows for its only container.
func (r *reader) restarts(ctx context.Context, namespace, name string) (int32, error) {
	p, err := r.pod(ctx, namespace, name)
	if err != nil || len(p.Status.ContainerStatuses) == 0 {
		return 0, err
	}
	return p.Status.ContainerStatuses[0].RestartCount, nil
}

// checkPod reports an error unless the pod of that name is this very one and stays.
func (r *reader) checkPod(ctx context.Context, namespace, name, uid string) error {
	p, err := r.pod(ctx, namespace, name)
	if err != nil {
		return err
	}
	if string(p.UID) != uid {
		return fmt.Errorf("pod %s/%s has been made anew (uid %s); this process belongs to uid %s", namespace, name, p.UID, uid)
	}
	if p.DeletionTimestamp != nil {
		return errors.New("own pod is being deleted")
	}
	return nil
}
