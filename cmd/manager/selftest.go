package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidemark-io/tidemark/controllers"
	"github.com/tidemark-io/tidemark/internal/selftest"
)

// selftestCommand makes a partition, uses and removes it: what `helm test` runs.
func selftestCommand() *cobra.Command {
	var c selftest.Config
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "selftest",
		Short: "Make a partition, produce to it, consume from it, and remove it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			c.Out = cmd.OutOrStdout()
			return runSelftest(ctx, c)
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.Namespace, "namespace", "default", "where the partition is made")
	f.StringVar(&c.Name, "name", "tidemark-test", "its name")
	f.Int32Var(&c.Replicas, "replicas", 3, "how many replicas it has")
	f.IntVar(&c.Records, "records", 1000, "how many records are produced and consumed")
	f.StringVar(&c.StorageSize, "storage-size", "256Mi", "size of each volume")
	f.StringVar(&c.StorageClassName, "storage-class", "", "StorageClass of the volumes; the cluster's default when empty")
	f.DurationVar(&timeout, "timeout", 4*time.Minute, "how long all but the removal may take")
	return cmd
}

func runSelftest(ctx context.Context, c selftest.Config) error {
	cfg, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the API server: %w", err)
	}
	scheme, err := controllers.NewScheme()
	if err != nil {
		return err
	}
	api, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("connect to the API server: %w", err)
	}
	return selftest.Run(ctx, api, c)
}
