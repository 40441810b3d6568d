package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/tidemark-io/tidemark/pkg/replica"
	"github.com/tidemark-io/tidemark/pkg/replica/standalone"
)

// standaloneCommand serves a topic from one process without Kubernetes.
func standaloneCommand() *cobra.Command {
	var o standalone.Options
	var l logFlags
	c := &cobra.Command{
		Use:   "standalone",
		Short: "Serve a topic from this one process, without Kubernetes, on a developer's machine",
		Example: `  replica standalone --data-dir ./data --topic orders
  kcat -b localhost:9092 -t orders -P`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if o.DataDir == "" || o.Topic == "" {
				return errors.New("--data-dir and --topic are needed, as in: replica standalone --data-dir ./data --topic orders")
			}
			log, err := logger(l.format, l.verbosity)
			if err != nil {
				return err
			}
			cfg, closeStore, err := standalone.Config(o, log)
			if err != nil {
				return err
			}
			defer closeStore()
			cfg.Registry = registry()
			return replica.Run(c.Context(), cfg)
		},
	}
	f := c.Flags()
	f.StringVar(&o.DataDir, "data-dir", "", "directory for the log and its record; made if missing")
	f.StringVar(&o.Topic, "topic", "", "name of the topic")
	f.StringVar(&o.Listen, "listen", "127.0.0.1:9092", "host:port for Kafka clients; an IPv6 address in brackets")
	f.StringVar(&o.Advertise, "advertise", "", "host:port that clients are told, if it is not what --listen says")
	f.StringVar(&o.HTTPListen, "http-listen", "127.0.0.1:8080", "host:port for /healthz, /readyz, /metrics and /v1/status; empty for none")
	f.BoolVar(&o.FlushNever, "flush-never", false, "do not fsync every batch: faster, and a crash of the machine may lose acknowledged records")
	l.add(c, "text")
	return c
}
