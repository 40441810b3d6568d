package main

import (
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/replica"
	"github.com/tidemark-io/tidemark/pkg/replica/incluster"
)

// runCommand is what the operator starts in a pod.
func runCommand() *cobra.Command {
	var o incluster.Options
	var l logFlags
	c := &cobra.Command{
		Use:   "run",
		Short: "Run a replica of a ReplicatedPartition in a Kubernetes pod",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			log, err := logger(l.format, l.verbosity)
			if err != nil {
				return err
			}
			cfg, err := incluster.Config(c.Context(), o, log)
			if err != nil {
				return err
			}
			cfg.Registry = registry()
			return replica.Run(c.Context(), cfg)
		},
	}
	f := c.Flags()
	f.StringVar(&o.Namespace, "namespace", os.Getenv("POD_NAMESPACE"), "namespace of the ReplicatedPartition")
	f.StringVar(&o.Partition, "partition", "", "name of the ReplicatedPartition")
	f.IntVar(&o.ReplicaID, "replica-id", -1, "id of this replica")
	f.StringVar(&o.DataDir, "data-dir", "/var/lib/tidemark", "the volume")
	f.StringVar(&o.WitnessDir, "witness-dir", "", "directory on tmpfs that lives as long as the pod")
	f.StringVar(&o.PodName, "pod-name", os.Getenv("POD_NAME"), "name of this pod")
	f.StringVar(&o.PodUID, "pod-uid", os.Getenv("POD_UID"), "uid of this pod")
	f.StringVar(&o.PodIP, "pod-ip", os.Getenv("POD_IP"), "address that clients and the other replicas reach this pod at")
	f.StringVar(&o.Kubeconfig, "kubeconfig", "", "kubeconfig file; empty for the pod's service account")
	f.StringVar(&o.ListenHost, "listen-host", "", "address to listen on; empty for all of the pod's")
	f.IntVar(&o.ClientPort, "client-port", v1alpha1.PortKafka, "port for Kafka clients")
	f.IntVar(&o.ReplicationPort, "replication-port", v1alpha1.PortReplication, "port for the other replicas")
	f.IntVar(&o.HTTPPort, "http-port", v1alpha1.PortHTTP, "port for /healthz, /readyz, /metrics and /v1/status")
	l.add(c, "json")
	return c
}

func registry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}
