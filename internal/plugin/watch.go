package plugin

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
)

// watchPause is how long a broken watch is left alone.
const watchPause = time.Second

// follow shows the partitions whenever one changes, until ctx ends, which is no error.
func (o *statusOptions) follow(ctx context.Context, c *cluster) error {
	s := &screen{o: o, shown: map[client.ObjectKey]v1alpha1.ReplicatedPartition{}}
	for first := true; ; first = false {
		err := o.followOnce(ctx, c, s)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil && first {
			return err
		}
		// The API server ends watches from time to time; and it may be away for a while.
		if err != nil {
			fmt.Fprintln(o.ErrOut, "trying again:", oneLine(explain(err)))
			s.drawn = 0
		}
		select {
		case <-time.After(watchPause):
		case <-ctx.Done():
			return nil
		}
	}
}

// followOnce lists, and shows the changes from there on, until the watch ends.
func (o *statusOptions) followOnce(ctx context.Context, c *cluster, s *screen) error {
	list, err := o.read(ctx, c)
	if err != nil {
		return err
	}
	w, err := c.api.Watch(ctx, &v1alpha1.ReplicatedPartitionList{}, client.InNamespace(o.scope(c)),
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	if err != nil {
		return fmt.Errorf("watch ReplicatedPartitions: %w", err)
	}
	defer w.Stop()
	if err := s.reset(list.Items); err != nil {
		return err
	}
	for e := range w.ResultChan() {
		rp, ok := e.Object.(*v1alpha1.ReplicatedPartition)
		if !ok { // too old, or a bookmark
			return nil
		}
		if !o.wanted(rp) {
			continue
		}
		if err := s.change(rp, e.Type == watch.Deleted); err != nil {
			return err
		}
	}
	return nil
}

// screen is what a watch has shown.
type screen struct {
	o     *statusOptions
	shown map[client.ObjectKey]v1alpha1.ReplicatedPartition
	// drawn is how many lines of the terminal are to be drawn over.
	drawn int
}

// reset shows a whole list, if it is not what is shown already.
func (s *screen) reset(items []v1alpha1.ReplicatedPartition) error {
	now := map[client.ObjectKey]v1alpha1.ReplicatedPartition{}
	same := len(items) == len(s.shown) && s.drawn > 0
	for _, rp := range items {
		key := client.ObjectKeyFromObject(&rp)
		now[key] = rp
		same = same && s.shown[key].ResourceVersion == rp.ResourceVersion
	}
	s.shown = now
	if same {
		return nil
	}
	return s.draw(items)
}

func (s *screen) change(rp *v1alpha1.ReplicatedPartition, deleted bool) error {
	key := client.ObjectKeyFromObject(rp)
	s.shown[key] = *rp
	if deleted {
		delete(s.shown, key)
	}
	return s.draw([]v1alpha1.ReplicatedPartition{*rp})
}

// draw shows everything anew on a terminal, elsewhere what has changed.
func (s *screen) draw(changed []v1alpha1.ReplicatedPartition) error {
	if s.o.output != "" {
		for i := range changed {
			changed[i].SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("ReplicatedPartition"))
			if err := printObject(&changed[i], s.o.output, s.o.Out); err != nil {
				return err
			}
		}
		return nil
	}
	_, height := s.o.terminal()
	if height == 0 {
		for i := range changed {
			text := s.o.text(changed[i : i+1])
			if _, there := s.shown[client.ObjectKeyFromObject(&changed[i])]; !there {
				text = changed[i].Name + "  deleted\n"
			}
			if s.drawn > 0 {
				text = "\n" + text
			}
			s.drawn++
			fmt.Fprint(s.o.Out, text)
		}
		return nil
	}
	text := s.o.text(s.sorted())
	if len(s.shown) == 0 {
		text = "There are no partitions.\n"
	}
	fmt.Fprint(s.o.Out, redraw(text, s.drawn, height))
	s.drawn = strings.Count(text, "\n")
	return nil
}

func (s *screen) sorted() []v1alpha1.ReplicatedPartition {
	return slices.SortedFunc(maps.Values(s.shown), func(a, b v1alpha1.ReplicatedPartition) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
}

// redraw puts a text in the place of the lines drawn before. What has scrolled away cannot
// be reached any more: then the screen is begun anew, as it is for a text that it cannot hold.
func redraw(text string, drawn, height int) string {
	const clearToEnd, clearScreen = "\x1b[J", "\x1b[H\x1b[2J"
	switch {
	case drawn == 0:
		return text
	case drawn >= height || strings.Count(text, "\n") >= height:
		return clearScreen + text
	}
	return fmt.Sprintf("\x1b[%dA\r", drawn) + clearToEnd + text
}
