package plugin

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
)

// reportLimit bounds one file of a report, but for objects.
const reportLimit = 8 << 20

type reportOptions struct {
	*base
	file              string
	lines             int64
	operatorNamespace string
}

func reportCommand(b *base) *cobra.Command {
	o := reportOptions{base: b}
	c := &cobra.Command{
		Use:   "report NAME",
		Short: "Write a bundle for somebody who is to help: objects, events, logs, metrics; no records, no secrets",
		Long: `Write a bundle for somebody who is to help: the partition, its Lease, pods and claims, their events,
the last lines of the replicas' and the operator's logs, and each replica's status and metrics.

It holds no record of the log and no Secret. The values of environment variables, and of
annotations that are not Tidemark's, are left out. Names, labels and addresses are in it: look
through it before you give it away.`,
		Args:              named,
		ValidArgsFunction: b.completeOne,
		RunE:              func(c *cobra.Command, args []string) error { return o.run(c.Context(), args[0]) },
	}
	f := c.Flags()
	f.StringVarP(&o.file, "file", "f", "", "where to write it; - for the standard output; a name made of partition and time if it is left away")
	f.Int64Var(&o.lines, "log-lines", 2000, "how many of the last lines of each log")
	f.StringVar(&o.operatorNamespace, "operator-namespace", "tidemark-system", "the namespace that the operator runs in")
	complete(c, "operator-namespace", b.completeNamespaces)
	return c
}

func (o *reportOptions) run(ctx context.Context, name string) error {
	c, err := o.connect()
	if err != nil {
		return err
	}
	rp, err := c.partition(ctx, name)
	gone := isGone(err)
	if err != nil && !gone {
		return err
	}
	now := time.Now().UTC()
	top := fmt.Sprintf("tidemark-report-%s-%s-%s", c.namespace, name, now.Format("20060102-150405"))
	if gone {
		rp = &v1alpha1.ReplicatedPartition{}
		rp.Namespace, rp.Name = c.namespace, name
	}
	out, done, err := o.open(top + ".tar.gz")
	if err != nil {
		return err
	}
	b := newBundle(out, top, now)
	err = o.collect(ctx, c, rp, gone, b)
	if cerr := b.close(); err == nil {
		err = cerr
	}
	if err := done(err); err != nil {
		return err
	}
	for _, m := range b.missing {
		fmt.Fprintln(o.ErrOut, "not in the report:", m)
	}
	return nil
}

// open makes the file, and returns what ends it: one that is not whole does not stay.
func (o *reportOptions) open(name string) (io.Writer, func(error) error, error) {
	if o.file == "-" {
		return o.Out, func(err error) error { return err }, nil
	}
	if o.file != "" {
		name = o.file
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("make the report's file, name another with --file: %w", err)
	}
	return f, func(err error) error {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			_ = os.Remove(name)
			return err
		}
		fmt.Fprintln(o.Out, name)
		return nil
	}, nil
}

// collect adds everything. What cannot be had is noted; an error is one of writing.
func (o *reportOptions) collect(ctx context.Context, c *cluster, rp *v1alpha1.ReplicatedPartition, gone bool, b *bundle) error {
	add := func(name string, content []byte, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return b.add(name, content, err)
	}
	g := gatherer{c: c, add: add, lines: o.lines}
	steps := []func() error{
		func() error {
			if gone {
				return add("partition.yaml", nil, fmt.Errorf("there is no ReplicatedPartition %s", rp.Name))
			}
			return g.object("partition.yaml", rp)
		},
		func() error { return g.record(ctx, rp, gone) },
		func() error { return g.children(ctx, rp) },
		func() error { return g.endpoints(ctx, rp) },
		func() error { return g.operator(ctx, o.operatorNamespace) },
		func() error { return g.events(ctx, rp) },
		func() error { return add("about.txt", []byte(about(rp, b)), nil) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func about(rp *v1alpha1.ReplicatedPartition, b *bundle) string {
	text := fmt.Sprintf("Partition %s in namespace %s, collected at %s by kubectl-tidemark %s.\n", rp.Name, rp.Namespace, b.now.Format(time.RFC3339), version())
	if len(b.missing) > 0 {
		text += "\nNot in this report:\n  " + strings.Join(b.missing, "\n  ") + "\n"
	}
	return text
}

// gatherer fetches what goes into a report.
type gatherer struct {
	c     *cluster
	add   func(name string, content []byte, err error) error
	lines int64
}

func (g *gatherer) object(name string, obj client.Object) error {
	y, err := redactedYAML(g.c.api.Scheme(), obj)
	return g.add(name, y, err)
}

// record adds the Lease as it is, and decoded.
func (g *gatherer) record(ctx context.Context, rp *v1alpha1.ReplicatedPartition, gone bool) error {
	l, err := g.c.lease(ctx, rp)
	if err != nil {
		return g.add("lease.yaml", nil, err)
	}
	if err := g.object("lease.yaml", l); err != nil {
		return err
	}
	r, err := recordIn(l, rp, gone)
	if err != nil {
		return g.add("record.txt", nil, err)
	}
	return g.add("record.txt", []byte(recordText(l.Name, r)), nil)
}

// children adds pods with their logs, and claims.
func (g *gatherer) children(ctx context.Context, rp *v1alpha1.ReplicatedPartition) error {
	pods, err := g.c.pods(ctx, rp)
	if err != nil {
		return g.add("pods", nil, err)
	}
	for i := range pods {
		if err := g.pod(ctx, "pods/", &pods[i]); err != nil {
			return err
		}
	}
	var claims corev1.PersistentVolumeClaimList
	if err := g.c.api.List(ctx, &claims, client.InNamespace(rp.Namespace), childrenOf(rp)); err != nil {
		return g.add("claims", nil, err)
	}
	for i := range claims.Items {
		if err := g.object("claims/"+claims.Items[i].Name+".yaml", &claims.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

// pod adds a pod, and the logs of our container in it: of its present run, and of the one
// before if there was one.
func (g *gatherer) pod(ctx context.Context, dir string, p *corev1.Pod) error {
	if err := g.object(dir+p.Name+".yaml", p); err != nil {
		return err
	}
	for _, c := range p.Status.ContainerStatuses {
		if !ourContainers[c.Name] {
			continue
		}
		log, err := g.log(ctx, p, c.Name, false)
		if err := g.add(dir+p.Name+".log", log, err); err != nil {
			return err
		}
		if c.RestartCount == 0 {
			continue
		}
		log, err = g.log(ctx, p, c.Name, true)
		if err := g.add(dir+p.Name+".previous.log", log, err); err != nil {
			return err
		}
	}
	return nil
}

func (g *gatherer) log(ctx context.Context, p *corev1.Pod, container string, previous bool) ([]byte, error) {
	limit := int64(reportLimit)
	s, err := g.c.core.Pods(p.Namespace).GetLogs(p.Name, &corev1.PodLogOptions{
		Container: container, Previous: previous, TailLines: &g.lines, LimitBytes: &limit, Timestamps: true}).Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return io.ReadAll(io.LimitReader(s, limit))
}

// endpoints adds what each replica says of itself.
func (g *gatherer) endpoints(ctx context.Context, rp *v1alpha1.ReplicatedPartition) error {
	replicas, err := g.c.replicas(ctx, rp)
	if err != nil {
		return g.add("replicas", nil, err)
	}
	for _, r := range replicas {
		for path, name := range map[string]string{"/v1/status": "status.json", "/metrics": "metrics.txt"} {
			b, err := r.page(ctx, path)
			if err := g.add("replicas/"+r.pod+"/"+name, b, err); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *replicaEndpoint) page(ctx context.Context, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	body, err := r.get(ctx, path, nil)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return io.ReadAll(io.LimitReader(body, reportLimit))
}

// operator adds its pods with their logs.
func (g *gatherer) operator(ctx context.Context, namespace string) error {
	var l corev1.PodList
	err := g.c.api.List(ctx, &l, client.InNamespace(namespace), client.MatchingLabels{v1alpha1.LabelName: "tidemark-operator"})
	if err == nil && len(l.Items) == 0 {
		err = fmt.Errorf("there is none in namespace %s; name its namespace with --operator-namespace", namespace)
	}
	if err != nil {
		return g.add("operator", nil, err)
	}
	for i := range l.Items {
		if err := g.pod(ctx, "operator/", &l.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

// events adds those of the partition's objects, which are all named after it.
func (g *gatherer) events(ctx context.Context, rp *v1alpha1.ReplicatedPartition) error {
	var l corev1.EventList
	if err := g.c.api.List(ctx, &l, client.InNamespace(rp.Namespace)); err != nil {
		return g.add("events.yaml", nil, err)
	}
	var all []byte
	for i := range l.Items {
		e := &l.Items[i]
		if n := e.InvolvedObject.Name; n != rp.Name && !strings.HasPrefix(n, rp.Name+"-") && !strings.HasPrefix(n, "data-"+rp.Name+"-") {
			continue
		}
		y, err := redactedYAML(g.c.api.Scheme(), e)
		if err != nil {
			return g.add("events.yaml", nil, err)
		}
		all = append(append(all, "---\n"...), y...)
	}
	return g.add("events.yaml", all, nil)
}
