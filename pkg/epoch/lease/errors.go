package lease

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// statusCode is the HTTP code of an answer that the API server itself gave, or 0:
// a proxy's "404 page not found" must not read as "there is no record", nor its 403
// as "nothing was written".
func statusCode(err error) int {
	if apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
		return 0
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return 0
	}
	return int(status.Status().Code)
}

func readError(err error) error {
	switch statusCode(err) {
	case http.StatusNotFound:
		return fmt.Errorf("%w: %w", epoch.ErrNotFound, err)
	case http.StatusForbidden:
		return fmt.Errorf("%w: %w", epoch.ErrRejected, err)
	default:
		return err
	}
}

// writeError sorts the answers to a PUT. Only those that an API server gives
// without having written are named; 401, 429 and 5xx stay undecided, which is never
// wrong.
func writeError(err error) error {
	switch statusCode(err) {
	case http.StatusConflict:
		return fmt.Errorf("%w: %w", epoch.ErrConflict, err)
	case http.StatusNotFound:
		return fmt.Errorf("%w: %w", epoch.ErrNotFound, err)
	case http.StatusBadRequest, http.StatusForbidden, http.StatusUnprocessableEntity,
		http.StatusRequestEntityTooLarge, http.StatusMethodNotAllowed, http.StatusUnsupportedMediaType:
		return fmt.Errorf("%w: %w", epoch.ErrRejected, err)
	default:
		return err
	}
}

// createError is writeError for a POST, where 404 speaks of the namespace.
func createError(err error) error {
	if statusCode(err) == http.StatusNotFound {
		return fmt.Errorf("%w: %w", epoch.ErrRejected, err)
	}
	return writeError(err)
}
