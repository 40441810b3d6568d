package plugin

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
)

// completionTimeout bounds what a press of the tab key waits for.
const completionTimeout = 5 * time.Second

type completion = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

// complete sets how a flag is completed.
func complete(c *cobra.Command, flag string, f completion) {
	if err := c.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err) // there is no such flag: wrong in every run
	}
}

func fixed(words ...string) completion {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeOne completes the name of one partition.
func (b *base) completeOne(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return b.completePartitions(c, args, prefix)
}

// completePartitions completes names that are not on the command line yet.
func (b *base) completePartitions(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	return b.lookUp(c, func(ctx context.Context, k *cluster) ([]string, error) {
		var l v1alpha1.ReplicatedPartitionList
		err := k.api.List(ctx, &l, client.InNamespace(k.namespace))
		var names []string
		for _, rp := range l.Items {
			if strings.HasPrefix(rp.Name, prefix) && !slices.Contains(args, rp.Name) {
				names = append(names, rp.Name)
			}
		}
		return names, err
	})
}

// completePromotion completes a partition, and then a replica that could lead.
func (b *base) completePromotion(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) != 1 {
		return b.completeOne(c, args, prefix)
	}
	return b.lookUp(c, func(ctx context.Context, k *cluster) ([]string, error) {
		rp, err := k.partition(ctx, args[0])
		if err != nil {
			return nil, err
		}
		var names []string
		for _, r := range rp.Status.Replicas {
			if r.InSync && r.Name != rp.Status.Leader && strings.HasPrefix(r.Name, prefix) {
				names = append(names, r.Name)
			}
		}
		return names, nil
	})
}

func (b *base) completeNamespaces(c *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	return b.lookUp(c, func(ctx context.Context, k *cluster) ([]string, error) {
		var l corev1.NamespaceList
		err := k.api.List(ctx, &l)
		var names []string
		for _, ns := range l.Items {
			if strings.HasPrefix(ns.Name, prefix) {
				names = append(names, ns.Name)
			}
		}
		return names, err
	})
}

// lookUp asks the API server; what goes wrong only leaves the line as it is.
func (b *base) lookUp(c *cobra.Command, ask func(context.Context, *cluster) ([]string, error)) ([]string, cobra.ShellCompDirective) {
	ctx := c.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	k, err := b.connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names, _ := ask(ctx, k)
	return names, cobra.ShellCompDirectiveNoFileComp
}
