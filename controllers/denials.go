package controllers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
)

// Denials knows what the API server does not let the caches list or watch. An operator that
// lacks such a permission does nothing, or goes by what it saw before, and has no partition in
// whose status to say so. The zero value is ready for use; several goroutines may use it.
type Denials struct {
	now func() time.Time // time.Now when nil

	mu sync.Mutex
	// seen is when each was last met, by the API server's words.
	seen map[string]time.Time
}

// deniedFor is how long a denial counts. The caches ask again within half of it.
const deniedFor = 2 * time.Minute

// note is told of every list or watch that has ended with an error.
func (d *Denials) note(ctx context.Context, r *toolscache.Reflector, err error) {
	if !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) {
		toolscache.DefaultWatchErrorHandler(ctx, r, err)
		return
	}
	if d.meet(err.Error()) {
		log.Log.Error(err, "the operator may not read what it goes by"+remedies[v1alpha1.ReasonPermissionMissing], "type", r.TypeDescription())
	}
}

// meet takes note of a denial, and reports that it is news.
func (d *Denials) meet(text string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	at, known := d.seen[text]
	if d.seen == nil {
		d.seen = map[string]time.Time{}
	}
	d.seen[text] = d.clock()
	return !known || d.clock().Sub(at) > deniedFor
}

// Check is a readiness check: an error that has the API server's words while anything is
// denied.
func (d *Denials) Check(*http.Request) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var texts []string
	for text, at := range d.seen {
		if d.clock().Sub(at) <= deniedFor {
			texts = append(texts, text)
		}
	}
	if len(texts) == 0 {
		return nil
	}
	slices.Sort(texts)
	return fmt.Errorf("%s%s", strings.Join(texts, "; "), remedies[v1alpha1.ReasonPermissionMissing])
}

// CachesFilled is a readiness check: an error before all that is watched was listed once.
func CachesFilled(c cache.Cache) func(*http.Request) error {
	return func(req *http.Request) error {
		ctx, cancel := context.WithTimeout(req.Context(), fillWait)
		defer cancel()
		if !c.WaitForCacheSync(ctx) {
			return errors.New("not everything that is watched has been listed yet: the log tells if the API server refuses it")
		}
		return nil
	}
}

// fillWait is how long a probe waits, which has a second.
const fillWait = 500 * time.Millisecond

func (d *Denials) clock() time.Time {
	if d.now == nil {
		return time.Now()
	}
	return d.now()
}
