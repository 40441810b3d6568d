package plugin

import (
	"context"
	"errors"
	"fmt"
	"net"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
)

// explain says what to do about errors that by themselves do not.
func explain(err error) error {
	var network *net.OpError
	switch status := apierrors.APIStatus(nil); {
	case clientcmd.IsEmptyConfig(err):
		return errors.New("there is no kubeconfig: name one with --kubeconfig, or set KUBECONFIG")
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted")
	case errors.As(err, &status) && apierrors.IsNotFound(err) && withoutName(status):
		return fmt.Errorf("the server does not know ReplicatedPartitions (%s): install Tidemark there, or choose another --context", v1alpha1.GroupVersion)
	case errors.As(err, &status) && apierrors.IsNotFound(err) && status.Status().Details.Kind == resourceName:
		return fmt.Errorf("there is no such partition: %w; kubectl get rp -A lists all", err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w; docs/operations/plugin.md lists the permissions that each command needs", err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%w: log in again, or choose another --context", err)
	case errors.As(err, &network) && network.Op == "dial":
		return fmt.Errorf("%w: is the API server of this --context running, and reachable from here?", err)
	}
	return err
}

// withoutName: the answer is about the resource and not about one object of it.
func withoutName(s apierrors.APIStatus) bool {
	d := s.Status().Details
	return d == nil || d.Name == ""
}

// isGone: the server knows the resource, and has no object of that name.
func isGone(err error) bool {
	var s apierrors.APIStatus
	return errors.As(err, &s) && apierrors.IsNotFound(err) && !withoutName(s)
}
