package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"
)

// checkCommand asks a running operator whether it answers: what `helm test` runs.
func checkCommand() *cobra.Command {
	var url string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check that an operator answers at a URL",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			return check(ctx, url)
		},
	}
	cmd.Flags().StringVar(&url, "url", "http://localhost:8081/readyz", "what to get")
	cmd.Flags().DurationVar(&timeout, "timeout", 30*time.Second, "how long to try")
	return cmd
}

// check repeats until it gets an answer that says 200, or ctx ends.
func check(ctx context.Context, url string) error {
	for {
		err := get(ctx, url)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s does not answer: %w", url, err)
		case <-time.After(500 * time.Millisecond):
		}
	}
}

func get(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	if err := res.Body.Close(); err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("it answers %s", res.Status)
	}
	return nil
}
