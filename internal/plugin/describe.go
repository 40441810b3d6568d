package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/epoch/lease"
	"github.com/tidemark-io/tidemark/pkg/epoch/recordjson"
)

type describeOptions struct {
	*base
	output string
}

func describeRecordCommand(b *base) *cobra.Command {
	o := describeOptions{base: b}
	c := &cobra.Command{
		Use:   "describe-record NAME",
		Short: "Show the partition record: who leads, who may lead, and what was decided last",
		Long: `Show the partition record: who leads, who may lead, and what was decided last.

The record is in the Lease of the partition's name, which must not be edited by hand. It is
shown as it is there, also when the partition object itself is gone.`,
		Args:              named,
		ValidArgsFunction: b.completeOne,
		RunE:              func(c *cobra.Command, args []string) error { return o.run(c.Context(), args[0]) },
	}
	c.Flags().StringVarP(&o.output, "output", "o", "", "json: the whole record")
	complete(c, "output", fixed("json"))
	return c
}

func (o *describeOptions) run(ctx context.Context, name string) error {
	if o.output != "" && o.output != "json" {
		return fmt.Errorf("-o %s is not known; json is", o.output)
	}
	c, err := o.connect()
	if err != nil {
		return err
	}
	rp := &v1alpha1.ReplicatedPartition{}
	rp.Namespace, rp.Name = c.namespace, name
	l, err := c.lease(ctx, rp)
	if err != nil {
		if _, perr := c.partition(ctx, name); perr != nil && apierrors.IsNotFound(err) {
			return perr
		}
		return err
	}
	gone := false
	if err := c.api.Get(ctx, client.ObjectKeyFromObject(rp), rp); apierrors.IsNotFound(err) {
		gone = true
	} else if err != nil {
		return fmt.Errorf("read ReplicatedPartition %s: %w", name, err)
	}
	r, err := recordIn(l, rp, gone)
	if err != nil {
		return err
	}
	if o.output == "json" {
		b, err := recordJSON(l, r)
		if err != nil {
			return err
		}
		_, err = o.Out.Write(b)
		return err
	}
	if gone {
		fmt.Fprintf(o.Out, "! there is no ReplicatedPartition %s any more; the record is what it left\n\n", name)
	}
	_, err = o.Out.Write([]byte(recordText(l.Name, r)))
	return err
}

// recordIn decodes the Lease for the partition it should belong to, or, when that is gone,
// for whichever it says.
func recordIn(l *coordinationv1.Lease, rp *v1alpha1.ReplicatedPartition, gone bool) (epoch.Record, error) {
	if !gone {
		return decodeRecord(l, rp)
	}
	own, err := recordjson.Unmarshal([]byte(l.Annotations[lease.AnnotationState]))
	if err != nil {
		return own, fmt.Errorf("the Lease %s holds no partition record: %w", l.Name, err)
	}
	return lease.Decode(l, own.TopicID)
}

// recordJSON is everything that the Lease says of the record.
func recordJSON(l *coordinationv1.Lease, r epoch.Record) ([]byte, error) {
	state, err := recordjson.Marshal(r, []byte(l.Annotations[lease.AnnotationState]))
	if err != nil {
		return nil, err
	}
	out := struct {
		Namespace       string          `json:"namespace"`
		Lease           string          `json:"lease"`
		ResourceVersion string          `json:"resourceVersion"`
		State           json.RawMessage `json:"state"`
		Progress        *epoch.Progress `json:"progress,omitempty"`
		Heartbeat       any             `json:"heartbeat"`
	}{l.Namespace, l.Name, l.ResourceVersion, state, r.Progress, map[string]any{
		"renewTime": l.Spec.RenewTime, "acquireTime": l.Spec.AcquireTime, "leaseDurationSeconds": l.Spec.LeaseDurationSeconds,
	}}
	b, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return nil, errors.Join(errors.New("encode the partition record"), err)
	}
	return append(b, '\n'), nil
}
