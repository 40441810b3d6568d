package plugin

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/yaml"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
)

// Every testdata/record/NAME.yaml is a Lease, and NAME.txt its record as text.
func TestRecordText(t *testing.T) {
	files, err := filepath.Glob("testdata/record/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no Leases", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			l := &coordinationv1.Lease{}
			if err := yaml.UnmarshalStrict(b, l); err != nil {
				t.Fatal(err)
			}
			r, err := recordIn(l, nil, true)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, strings.TrimSuffix(file, ".yaml")+".txt", recordText(l.Name, r))
		})
	}
}

func TestDescribeRecord(t *testing.T) {
	p := newPartition(t, 1)
	ns := p.rp.Namespace
	out := mustRun(t, ns, "", "describe-record", "orders")
	for _, want := range []string{"Leader             orders-0, session ", "Leader epoch       1, elected because of", "orders-0 (leader, in ISR)", "Last changes"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	var record struct {
		State struct {
			TopicID     string `json:"topicID"`
			LeaderEpoch int    `json:"leaderEpoch"`
		} `json:"state"`
	}
	text := mustRun(t, ns, "", "describe-record", "orders", "-o", "json")
	if err := json.Unmarshal([]byte(text), &record); err != nil || record.State.LeaderEpoch != 1 || record.State.TopicID != p.record().TopicID.String() {
		t.Errorf("%v: %s", err, text)
	}
	if err := lab.api.Delete(t.Context(), &v1alpha1.ReplicatedPartition{ObjectMeta: p.rp.ObjectMeta}); err != nil {
		t.Fatal(err)
	}
	if out := mustRun(t, ns, "", "describe-record", "orders"); !strings.Contains(out, "! there is no ReplicatedPartition orders any more") {
		t.Errorf("without its partition:\n%s", out)
	}
	mustFail(t, ns, "there is no such partition", "describe-record", "other")
}

// A Lease that was edited by hand is told of, not shown as if it were a record.
func TestDescribeRecordRefusesAnEditedLease(t *testing.T) {
	p := newPartition(t, 1)
	p.stop(0)
	c := &cluster{api: lab.api, namespace: p.rp.Namespace}
	l, err := c.lease(t.Context(), p.rp)
	if err != nil {
		t.Fatal(err)
	}
	*l.Spec.LeaseTransitions = 41
	if err := lab.api.Update(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	mustFail(t, p.rp.Namespace, `spec.leaseTransitions is "41"`, "describe-record", "orders")
}
