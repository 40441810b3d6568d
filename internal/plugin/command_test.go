package plugin

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
)

func TestStatusCommand(t *testing.T) {
	p := withStatus(t)
	ns := p.rp.Namespace
	if out := mustRun(t, ns, "", "status"); !strings.HasPrefix(out, "orders  Ready: ?\n  leader orders-0  epoch 7") {
		t.Errorf("all in the namespace:\n%s", out)
	}
	if out := mustRun(t, ns, "", "status", "-A"); !strings.Contains(out, ns+"/orders  Ready: ?\n") {
		t.Errorf("all in all namespaces:\n%s", out)
	}
	var one v1alpha1.ReplicatedPartition
	if err := json.Unmarshal([]byte(mustRun(t, ns, "", "status", "orders", "-o", "json")), &one); err != nil || one.Kind != "ReplicatedPartition" || one.Status.LeaderEpoch != 7 {
		t.Errorf("the object: %v, %+v", err, one)
	}
	if out := mustRun(t, ns, "", "status", "-o", "yaml"); !strings.Contains(out, "kind: ReplicatedPartitionList") {
		t.Errorf("the list:\n%s", out)
	}
	mustFail(t, ns, "there is no such partition", "status", "orders", "other")
	mustFail(t, ns, "leave the names away", "status", "-A", "orders")
	mustFail(t, ns, "-o wide is not known", "status", "-o", "wide")
}

func TestStatusWatchAppendsWhereThereIsNoTerminal(t *testing.T) {
	p := withStatus(t)
	i := begin(t, p.rp.Namespace, "", "status", "-w")
	await(t, "the first picture", contains(i, "epoch 7"))
	p.setStatus(func(s *v1alpha1.ReplicatedPartitionStatus) { s.Leader, s.LeaderEpoch = "orders-1", 8 })
	await(t, "the change", contains(i, "leader orders-1  epoch 8"))
	if err := lab.api.Delete(t.Context(), p.rp); err != nil {
		t.Fatal(err)
	}
	await(t, "the end", contains(i, "orders  deleted"))
	i.end()
	if i.code != 0 || strings.Contains(i.out.String(), "\x1b") || strings.Count(i.out.String(), "epoch 7") != 1 {
		t.Errorf("exit status %d:\n%s%s", i.code, i.out.String(), i.err.String())
	}
}

func TestCompletion(t *testing.T) {
	p := withStatus(t)
	for line, want := range map[string][]string{
		"status ":                {"orders"},
		"status x":               nil,
		"status orders ":         nil,
		"consume or":             {"orders"},
		"promote orders ":        {"orders-1"},
		"produce orders --acks ": {"all", "1", "0"},
		"status -o ":             {"json", "yaml"},
	} {
		words := strings.Split(line, " ")
		args := append([]string{"__complete", "--kubeconfig", lab.kubeconfig, "-n", p.rp.Namespace}, words...)
		var out bytes.Buffer
		if code := Run(t.Context(), genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &bytes.Buffer{}}, args); code != 0 {
			t.Errorf("%q: exit status %d", line, code)
		}
		var got []string
		for l := range strings.Lines(out.String()) {
			if l = strings.TrimSpace(l); l != "" && !strings.HasPrefix(l, ":") && !strings.HasPrefix(l, "Completion") {
				got = append(got, l)
			}
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%q is completed by %q, want %q", line, got, want)
		}
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no kubeconfig": {[]string{"status", "--kubeconfig", filepath.Join(t.TempDir(), "none")}, "none: no such file or directory"},
		"no API server": {[]string{"status", "--server", "http://127.0.0.1:1", "--kubeconfig", "/dev/null"}, "is the API server of this --context running"},
		"no name":       {[]string{"consume"}, "kubectl get rp lists them"},
		"two names":     {[]string{"verify", "a", "b"}, "name one partition, not 2"},
		"no such verb":  {[]string{"demote"}, `unknown command "demote"`},
	} {
		t.Run(name, func(t *testing.T) {
			var errOut bytes.Buffer
			code := Run(t.Context(), genericiooptions.IOStreams{In: strings.NewReader(""), Out: &bytes.Buffer{}, ErrOut: &errOut}, c.args)
			if code != 1 || !strings.Contains(errOut.String(), c.want) || strings.Count(errOut.String(), "\n") != 1 {
				t.Errorf("exit status %d: %s, want one line with %q", code, errOut.String(), c.want)
			}
		})
	}
}

func TestVersion(t *testing.T) {
	var out bytes.Buffer
	if code := Run(t.Context(), genericiooptions.IOStreams{Out: &out, ErrOut: &out}, []string{"version"}); code != 0 || !strings.HasPrefix(out.String(), "kubectl-tidemark ") || !strings.Contains(out.String(), "tidemark.io/v1alpha1") {
		t.Errorf("exit status %d: %s", code, out.String())
	}
}
