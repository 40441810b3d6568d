package plugin

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/internal/plugin/forward"
	"github.com/tidemark-io/tidemark/pkg/replica/checksum"
)

// replicaEndpoint is the HTTP port of a replica, reached through the API server.
type replicaEndpoint struct {
	pod    string
	client *http.Client
}

// replicas are the partition's, one for each pod that there is or should be.
func (c *cluster) replicas(ctx context.Context, rp *v1alpha1.ReplicatedPartition) ([]*replicaEndpoint, error) {
	pods, err := c.pods(ctx, rp)
	if err != nil {
		return nil, err
	}
	ports := map[string]int{}
	for _, r := range rp.Status.Replicas {
		ports[r.Name] = v1alpha1.PortHTTP
	}
	for i := range pods {
		ports[pods[i].Name] = httpPort(&pods[i])
	}
	if len(ports) == 0 {
		return nil, fmt.Errorf("%s has no pods: kubectl tidemark status %s says why", rp.Name, rp.Name)
	}
	var out []*replicaEndpoint
	for name, port := range ports {
		out = append(out, newEndpoint(c.dialer(), c.namespace, name, port))
	}
	slices.SortFunc(out, func(a, b *replicaEndpoint) int { return strings.Compare(a.pod, b.pod) })
	return out, nil
}

func newEndpoint(d *forward.Dialer, namespace, pod string, port int) *replicaEndpoint {
	return &replicaEndpoint{pod: pod, client: &http.Client{Transport: &http.Transport{
		Proxy: nil, // the connection to the API server has its own
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, dialTimeout)
			defer cancel()
			c, err := d.Dial(ctx, namespace, pod, port)
			if err != nil {
				return nil, err
			}
			return c, nil
		},
		DisableKeepAlives: true,
	}}}
}

// httpPort is the pod's port of that name.
func httpPort(pod *corev1.Pod) int {
	for _, c := range pod.Spec.Containers {
		for _, p := range c.Ports {
			if p.Name == "http" {
				return int(p.ContainerPort)
			}
		}
	}
	return v1alpha1.PortHTTP
}

// get returns the body of an answer, which the caller closes.
func (r *replicaEndpoint) get(ctx context.Context, path string, query url.Values) (io.ReadCloser, error) {
	u := url.URL{Scheme: "http", Host: r.pod, Path: path, RawQuery: query.Encode()}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	why, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	if resp.StatusCode == http.StatusNotFound {
		return nil, fmt.Errorf("it does not know %s: its image is older than this plugin", path)
	}
	return nil, fmt.Errorf("%s", strings.TrimSpace(string(why)))
}

func (r *replicaEndpoint) status(ctx context.Context, into *replicaState) error {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	body, err := r.get(ctx, "/v1/status", nil)
	if err != nil {
		return err
	}
	defer body.Close()
	if err := json.NewDecoder(io.LimitReader(body, 1<<20)).Decode(into); err != nil {
		return fmt.Errorf("/v1/status: %w", err)
	}
	if into.Role == "" {
		return fmt.Errorf("it does not serve yet: %s %s", into.Phase, into.Message)
	}
	return nil
}

// checksums asks for the blocks of a range.
func (r *replicaEndpoint) checksums(ctx context.Context, rng checksum.Range) ([]checksum.Block, error) {
	q := url.Values{}
	q.Set("from", strconv.FormatInt(int64(rng.From), 10))
	q.Set("to", strconv.FormatInt(int64(rng.To), 10))
	q.Set("step", strconv.FormatInt(rng.Step, 10))
	body, err := r.get(ctx, "/v1/checksum", q)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	blocks, err := readLines(json.NewDecoder(body))
	if err != nil {
		return nil, err
	}
	if n := (int64(rng.To-rng.From) + rng.Step - 1) / rng.Step; int64(len(blocks)) != n {
		return nil, fmt.Errorf("it answered with %d blocks, not %d", len(blocks), n)
	}
	return blocks, nil
}
