package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
)

type statusOptions struct {
	*base
	all    bool
	watch  bool
	output string
	names  []string
}

func statusCommand(b *base) *cobra.Command {
	o := statusOptions{base: b}
	c := &cobra.Command{
		Use:   "status [NAME...]",
		Short: "Show partitions: leader, epochs, and how far each replica's log goes",
		Long: `Show partitions: leader, epochs, and how far each replica's log goes.

Numbers are those of the partition's status, which follows a few seconds behind; "?" stands
for what is not known. The bar is the replica's log beside the leader's; the | in it is its
high watermark.`,
		Example: `  kubectl tidemark status             # all in the namespace
  kubectl tidemark status orders -w   # one, redrawn when it changes
  kubectl tidemark status -A`,
		ValidArgsFunction: b.completePartitions,
		RunE: func(c *cobra.Command, args []string) error {
			o.names = args
			return o.run(c.Context())
		},
	}
	f := c.Flags()
	f.BoolVarP(&o.all, "all-namespaces", "A", false, "show the partitions of all namespaces")
	f.BoolVarP(&o.watch, "watch", "w", false, "show every change: redrawn in place on a terminal, one after the other elsewhere")
	f.StringVarP(&o.output, "output", "o", "", "json or yaml: the objects themselves")
	complete(c, "output", fixed("json", "yaml"))
	return c
}

func (o *statusOptions) run(ctx context.Context) error {
	switch {
	case o.all && len(o.names) > 0:
		return errors.New("-A shows all partitions: leave the names away, or name a namespace with -n")
	case o.output != "" && o.output != "json" && o.output != "yaml":
		return fmt.Errorf("-o %s is not known; json and yaml are", o.output)
	}
	c, err := o.connect()
	if err != nil {
		return err
	}
	if o.watch {
		return o.follow(ctx, c)
	}
	list, err := o.read(ctx, c)
	if err != nil {
		return err
	}
	if o.output != "" {
		return o.printObjects(list)
	}
	if len(list.Items) == 0 {
		fmt.Fprintln(o.ErrOut, o.none(c))
		return nil
	}
	fmt.Fprint(o.Out, o.text(list.Items))
	return nil
}

func (o *statusOptions) none(c *cluster) string {
	if o.all {
		return "There are no partitions."
	}
	return fmt.Sprintf("There are no partitions in namespace %s.", c.namespace)
}

// read gets the partitions asked for. One that was named and is not there is an error.
func (o *statusOptions) read(ctx context.Context, c *cluster) (*v1alpha1.ReplicatedPartitionList, error) {
	list := &v1alpha1.ReplicatedPartitionList{}
	if len(o.names) > 0 && !o.watch {
		for _, name := range o.names {
			rp, err := c.partition(ctx, name)
			if err != nil {
				return nil, err
			}
			list.Items = append(list.Items, *rp)
		}
		return list, nil
	}
	if err := c.api.List(ctx, list, client.InNamespace(o.scope(c))); err != nil {
		return nil, fmt.Errorf("list ReplicatedPartitions: %w", err)
	}
	list.Items = slices.DeleteFunc(list.Items, func(rp v1alpha1.ReplicatedPartition) bool { return !o.wanted(&rp) })
	return list, nil
}

// scope is the namespace to list in, "" for all.
func (o *statusOptions) scope(c *cluster) string {
	if o.all {
		return metav1.NamespaceAll
	}
	return c.namespace
}

func (o *statusOptions) wanted(rp *v1alpha1.ReplicatedPartition) bool {
	return len(o.names) == 0 || slices.Contains(o.names, rp.Name)
}

// text is the pictures of several partitions.
func (o *statusOptions) text(items []v1alpha1.ReplicatedPartition) string {
	width, _ := o.terminal()
	var parts []string
	for i := range items {
		name := items[i].Name
		if o.all {
			name = items[i].Namespace + "/" + name
		}
		parts = append(parts, statusText(&items[i], name, width))
	}
	return strings.Join(parts, "\n")
}

// terminal is the size of the screen that the output goes to; zero if it is none.
func (o *statusOptions) terminal() (columns, lines int) {
	f, ok := o.Out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0, 0
	}
	columns, lines, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0, 0
	}
	return columns, lines
}

// printObjects prints one named partition as itself, others as a list.
func (o *statusOptions) printObjects(list *v1alpha1.ReplicatedPartitionList) error {
	for i := range list.Items {
		list.Items[i].SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("ReplicatedPartition"))
	}
	list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("ReplicatedPartitionList"))
	if len(o.names) == 1 && len(list.Items) == 1 {
		return printObject(&list.Items[0], o.output, o.Out)
	}
	return printObject(list, o.output, o.Out)
}

func printObject(obj runtime.Object, format string, out io.Writer) error {
	p, err := genericclioptions.NewJSONYamlPrintFlags().ToPrinter(format)
	if err != nil {
		return err
	}
	return p.PrintObj(obj, out)
}
