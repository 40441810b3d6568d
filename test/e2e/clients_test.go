//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/test/prober"
)

// text makes numbered lines.
func text(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%d the quick brown fox jumps over the lazy dog\n", i)
	}
	return b.String()
}

// kcat runs kcat with the arguments and the input, and returns its output.
func kcat(t testing.TB, p partition, input string, args ...string) string {
	t.Helper()
	var stdout, stderr strings.Builder
	cmd := exec.CommandContext(t.Context(), "kcat", append([]string{"-b", strings.Join(p.brokers(t), ","), "-t", p.name}, args...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("kcat %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return stdout.String()
}

func kcatProduce(t testing.TB, p partition, input string) {
	t.Helper()
	kcat(t, p, input, "-P", "-X", "acks=all", "-X", "enable.idempotence=true")
}

func kcatConsume(t testing.TB, p partition) string {
	t.Helper()
	return kcat(t, p, "", "-C", "-o", "beginning", "-e", "-q")
}

// firstDifference describes where two texts part, by line.
func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Sprintf("line %d: got %q, want %q (%d and %d lines)", i+1, g[i], w[i], len(g), len(w))
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(g), len(w))
}

func TestKcatReadsBackWhatItWroteInOrder(t *testing.T) {
	p := newPartition(t, "kcat")
	want := text(10_000)
	kcatProduce(t, p, want)
	if got := kcatConsume(t, p); got != want {
		t.Error(firstDifference(got, want))
	}
}

func TestKcatWritesThroughTheDeathOfTheLeader(t *testing.T) {
	p := newPartition(t, "kcat-failover")
	const lines = 20_000
	want := text(lines)
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	cmd := exec.CommandContext(t.Context(), "kcat", "-b", strings.Join(p.brokers(t), ","), "-t", p.name, "-P", "-X", "acks=all", "-X", "enable.idempotence=true")
	cmd.Stdin, cmd.Stderr = reader, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = reader.Close()
	half := strings.Index(want, fmt.Sprintf("\n%d ", lines/2)) + 1
	if _, err := writer.WriteString(want[:half]); err != nil {
		t.Fatal(err)
	}
	killPod(t, namespace, p.awaitInSync(t).Leader, "replica")
	if _, err := writer.WriteString(want[half:]); err != nil {
		t.Fatal(err)
	}
	_ = writer.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatalf("kcat: %v\n%s", err, stderr.String())
	}
	if got := kcatConsume(t, p); got != want {
		t.Error(firstDifference(got, want))
	}
}

// python runs a script of this folder with Debian's Python and kafka-python.
func python(t testing.TB, p partition, script, input string, args ...string) string {
	t.Helper()
	return startPython(t, p, script, input, args...)()
}

// startPython starts a script; the function that it returns waits for its end and returns its output.
func startPython(t testing.TB, p partition, script, input string, args ...string) func() string {
	t.Helper()
	var stdout, stderr strings.Builder
	file := filepath.Join("testdata", script)
	cmd := exec.CommandContext(t.Context(), "/usr/bin/python3", append([]string{file, strings.Join(p.brokers(t), ","), p.name}, args...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return func() string {
		t.Helper()
		if err := cmd.Wait(); err != nil {
			t.Fatalf("%s: %v\n%s", script, err, stderr.String())
		}
		return stdout.String()
	}
}

func TestEveryClientReadsWhatTheOthersWrote(t *testing.T) {
	p := newPartition(t, "clients")
	const each = 1000
	kcatProduce(t, p, text(each))
	python(t, p, "produce.py", text(each))
	l := startLoad(t, p)
	before := time.Now()
	l.await(t, before.Add(200*time.Millisecond))
	end, err := l.prober.Stop(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l.stopRead()

	final, err := prober.ReadAll(t.Context(), l.brokers, p.name, end)
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for _, r := range final {
		want.WriteString(r.Value + "\n")
	}
	if !strings.HasPrefix(want.String(), text(each)+text(each)) {
		t.Error("franz-go does not read what kcat and kafka-python wrote: " + firstDifference(want.String(), text(each)+text(each)))
	}
	if got := kcatConsume(t, p); got != want.String() {
		t.Error("kcat against franz-go: " + firstDifference(got, want.String()))
	}
	if got := python(t, p, "consume.py", "", strconv.FormatInt(end, 10)); got != want.String() {
		t.Error("kafka-python against franz-go: " + firstDifference(got, want.String()))
	}
}

// kafka-python 2.0 has no idempotent producer: a retry may write a record again, but none may be lost.
func TestPythonProducerSurvivesTheDeletionOfTheLeader(t *testing.T) {
	p := newPartition(t, "python")
	before := p.awaitInSync(t)
	const lines = 3000
	finish := startPython(t, p, "produce.py", text(lines), "2") // 2 ms between lines
	p.await(t, "the first records", func(s statusType) bool { return s.HighWatermark != nil && *s.HighWatermark > lines/10 })
	kubectl(t, "delete", "pod", before.Leader, "--wait=false")
	t.Logf("acknowledged: %s", finish())
	want := strings.SplitAfter(text(lines), "\n")
	next := 0
	for line := range strings.Lines(kcatConsume(t, p)) {
		if line == want[next] {
			next++
		}
	}
	if next != lines {
		t.Errorf("line %d of %d is missing or out of order", next, lines)
	}
	p.awaitInSync(t)
}
