package plugin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// Standard is the streams of the process.
func Standard() genericiooptions.IOStreams {
	return genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
}

// Quiet keeps client-go from logging, for the whole process: that is not for the person
// here, whom each error is told once, by us.
func Quiet() {
	klog.SetLogger(logr.Discard())
	ctrllog.SetLogger(logr.Discard())
}

// Run carries a command line out, and returns the exit status.
func Run(ctx context.Context, streams genericiooptions.IOStreams, args []string) int {
	c := command(streams)
	c.SetArgs(args)
	err := c.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	if !errors.Is(err, errTold) {
		fmt.Fprintln(streams.ErrOut, "error:", oneLine(explain(err)))
	}
	return 1
}

// errTold is an error that the output has told of already.
var errTold = errors.New("the output tells what is wrong")

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// base is what all subcommands have in common.
type base struct {
	genericiooptions.IOStreams
	flags *genericclioptions.ConfigFlags
}

func command(streams genericiooptions.IOStreams) *cobra.Command {
	b := &base{IOStreams: streams, flags: genericclioptions.NewConfigFlags(true)}
	c := &cobra.Command{
		Use:           "kubectl-tidemark",
		Short:         "See and work with Tidemark's partitions",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl tidemark"},
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	c.SetIn(streams.In)
	c.SetOut(streams.Out)
	c.SetErr(streams.ErrOut)
	b.flags.AddFlags(c.PersistentFlags())
	complete(c, "namespace", b.completeNamespaces)
	for _, sub := range []*cobra.Command{statusCommand(b), promoteCommand(b), produceCommand(b), consumeCommand(b),
		describeRecordCommand(b), verifyCommand(b), reportCommand(b), versionCommand(b)} {
		c.AddCommand(sub)
	}
	return c
}

// named wants exactly one partition's name.
func named(_ *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return errors.New("name a partition; kubectl get rp lists them")
	case len(args) > 1:
		return fmt.Errorf("name one partition, not %d", len(args))
	}
	return nil
}
