package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica/checksum"
)

const (
	// verifyBlocks is in how many blocks a range is compared at first, and a block that
	// differs again.
	verifyBlocks = 256
	// verifyAttempts is how often it begins anew because the logs' start has moved.
	verifyAttempts = 5
)

type verifyOptions struct {
	*base
	from, to int64
}

func verifyCommand(b *base) *cobra.Command {
	o := verifyOptions{base: b}
	c := &cobra.Command{
		Use:   "verify NAME",
		Short: "Compare the replicas' logs below the high watermark, by checksum",
		Long: `Compare the replicas' logs below the high watermark, by checksum.

Every replica reads its log, at most 64 MiB a second, checks it, and sums it up block by block; where
blocks differ, smaller ones are asked for, down to the batch. The exit status is 1 if a log
differs, is damaged, or could not be compared.

Logs that are or were compacted are refused: replicas compact for themselves, and what one has
removed another may rightly still have.`,
		Args:              named,
		ValidArgsFunction: b.completeOne,
		RunE:              func(c *cobra.Command, args []string) error { return o.run(c.Context(), args[0]) },
	}
	c.Flags().Int64Var(&o.from, "from", -1, "first offset to compare; where the last of the logs starts if it is left away")
	c.Flags().Int64Var(&o.to, "to", -1, "offset to end before; the lowest high watermark if it is left away")
	return c
}

func (o *verifyOptions) run(ctx context.Context, name string) error {
	c, err := o.connect()
	if err != nil {
		return err
	}
	rp, err := c.partition(ctx, name)
	if err != nil {
		return err
	}
	if p := rp.Spec.Log.CleanupPolicy; p == v1alpha1.CleanupCompact || p == v1alpha1.CleanupCompactAndDelete {
		return fmt.Errorf("%s has log.cleanupPolicy %s: replicas compact for themselves, so logs that are right may differ, and are not compared", name, p)
	}
	replicas, err := c.replicas(ctx, rp)
	if err != nil {
		return err
	}
	v, err := o.compare(ctx, replicas)
	if err != nil {
		return err
	}
	fmt.Fprint(o.Out, v.text())
	if !v.sound() {
		return errTold
	}
	return nil
}

// verification is what a comparison has found.
type verification struct {
	from, to epoch.Offset
	logs     []*verifiedLog
	// differs is the first block that is not the same everywhere, nil if there is none.
	differs *checksum.Block
}

// verifiedLog is one replica's part.
type verifiedLog struct {
	replica *replicaEndpoint
	state   replicaState
	// sum is all that was compared.
	records, bytes int64
	// of is what stands where the logs differ.
	of  checksum.Block
	err error
}

// replicaState is what /v1/status tells.
type replicaState struct {
	Role           string       `json:"role"`
	HighWatermark  epoch.Offset `json:"highWatermark"`
	LogEndOffset   epoch.Offset `json:"logEndOffset"`
	LogStartOffset epoch.Offset `json:"logStartOffset"`
	Phase          string       `json:"phase"`
	Message        string       `json:"message"`
}

// compare begins anew when retention has moved the logs' start over what was to be compared.
func (o *verifyOptions) compare(ctx context.Context, replicas []*replicaEndpoint) (*verification, error) {
	for attempt := 1; ; attempt++ {
		v := &verification{}
		for _, r := range replicas {
			v.logs = append(v.logs, &verifiedLog{replica: r})
		}
		v.each(func(l *verifiedLog) { l.err = l.replica.status(ctx, &l.state) })
		if err := o.bounds(v); err != nil {
			return nil, err
		}
		v.run(ctx)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if attempt == verifyAttempts || !v.startMoved(ctx) {
			return v, nil
		}
	}
}

// bounds sets the range that all reachable logs have, as far as it was asked for.
func (o *verifyOptions) bounds(v *verification) error {
	if o.to >= 0 && o.from > o.to {
		return fmt.Errorf("--from %d is behind --to %d", o.from, o.to)
	}
	reached := v.reached()
	if len(reached) == 0 {
		return fmt.Errorf("no replica could be reached; the first said: %w", v.logs[0].err)
	}
	v.to = reached[0].state.HighWatermark
	for _, l := range reached {
		v.from, v.to = max(v.from, l.state.LogStartOffset), min(v.to, l.state.HighWatermark)
	}
	if o.from >= 0 && epoch.Offset(o.from) < v.from || o.to >= 0 && epoch.Offset(o.to) > v.to {
		return fmt.Errorf("only offsets from %d to %d are in all logs and committed everywhere: set --from and --to within them", v.from, v.to)
	}
	if o.from >= 0 {
		v.from = epoch.Offset(o.from)
	}
	if o.to >= 0 {
		v.to = epoch.Offset(o.to)
	}
	v.from = min(v.from, v.to)
	return nil
}

func (v *verification) reached() (logs []*verifiedLog) {
	for _, l := range v.logs {
		if l.err == nil {
			logs = append(logs, l)
		}
	}
	return logs
}

// each does something for all logs that could be reached so far, at once.
func (v *verification) each(f func(*verifiedLog)) {
	var running sync.WaitGroup
	for _, l := range v.reached() {
		running.Go(func() { f(l) })
	}
	running.Wait()
}

// run compares the range, and then ever smaller blocks of the first one that differs.
func (v *verification) run(ctx context.Context) {
	r := checksum.Range{From: v.from, To: v.to, Step: checksum.StepFor(v.from, v.to, verifyBlocks)}
	for first := true; r.From < r.To; first = false {
		sums := make(map[*verifiedLog][]checksum.Block, len(v.logs))
		var mu sync.Mutex
		v.each(func(l *verifiedLog) {
			blocks, err := l.replica.checksums(ctx, r)
			mu.Lock()
			defer mu.Unlock()
			sums[l], l.err = blocks, err
		})
		logs := v.reached()
		if first {
			for _, l := range logs {
				l.count(sums[l])
			}
		}
		i := firstDifference(logs, sums)
		if i < 0 {
			return
		}
		for _, l := range logs {
			l.of = sums[l][i]
		}
		b := logs[0].of
		v.differs = &b
		if b.To-b.From == 1 {
			return
		}
		r = checksum.Range{From: b.From, To: b.To, Step: checksum.StepFor(b.From, b.To, verifyBlocks)}
	}
}

func (l *verifiedLog) count(blocks []checksum.Block) {
	for _, b := range blocks {
		l.records, l.bytes = l.records+b.Records, l.bytes+b.Bytes
	}
}

// firstDifference is the first block that is not the same in all logs, or -1.
func firstDifference(logs []*verifiedLog, sums map[*verifiedLog][]checksum.Block) int {
	if len(logs) < 2 {
		return -1
	}
	for i, b := range sums[logs[0]] {
		for _, l := range logs[1:] {
			if i < len(sums[l]) && sums[l][i] != b {
				return i
			}
		}
	}
	return -1
}

// startMoved: a log that could not be read to the end now starts behind where it should have
// been read.
func (v *verification) startMoved(ctx context.Context) bool {
	for _, l := range v.logs {
		var now replicaState
		if l.err != nil && l.replica.status(ctx, &now) == nil && now.LogStartOffset > v.from {
			return true
		}
	}
	return false
}

// sound: every log was compared, and all are the same.
func (v *verification) sound() bool { return v.differs == nil && len(v.reached()) == len(v.logs) }

// text is the result for a person.
func (v *verification) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Offsets %d to %d, which all logs have and all replicas know to be committed\n\n", v.from, v.to)
	columns := []*column{{head: "REPLICA"}, {head: "ROLE"}, {head: "RECORDS", right: true}, {head: "BYTES", right: true}, {head: "RESULT"}}
	for _, l := range v.logs {
		cells := []string{l.replica.pod, orUnknown(l.state.Role), "?", "?", "not compared"}
		if l.err == nil {
			cells = []string{l.replica.pod, orUnknown(l.state.Role), fmt.Sprint(l.records), fmt.Sprint(l.bytes), v.result(l)}
		}
		for i, cell := range cells {
			columns[i].cells = append(columns[i].cells, cell)
		}
	}
	widths, _ := share(columns, narrowest)
	fmt.Fprintln(&b, strings.TrimRight(tableRow(columns, widths, func(c *column) string { return c.head })[2:], " "))
	for i := range v.logs {
		fmt.Fprintln(&b, strings.TrimRight(tableRow(columns, widths, func(c *column) string { return c.cells[i] })[2:], " "))
	}
	b.WriteString(v.details())
	return b.String()
}

func (v *verification) result(l *verifiedLog) string {
	switch {
	case len(v.reached()) == 1:
		return "sound; nothing to compare it with"
	case v.differs == nil:
		return "same"
	case l.of == v.majority():
		return "as most"
	}
	return "DIFFERS"
}

// majority is what most logs have where they differ; of two it is the leader's.
func (v *verification) majority() checksum.Block {
	votes := map[checksum.Block]int{}
	for _, l := range v.reached() {
		votes[l.of] += 2
		if l.state.Role == "Leader" {
			votes[l.of]++
		}
	}
	logs := v.reached()
	return slices.MaxFunc(logs, func(a, b *verifiedLog) int { return votes[a.of] - votes[b.of] }).of
}

// details name what differs, and why a log was not compared.
func (v *verification) details() string {
	var b strings.Builder
	for _, l := range v.logs {
		if l.err != nil {
			fmt.Fprintf(&b, "\n! %s: %s", l.replica.pod, oneLine(l.err))
		}
	}
	if v.differs == nil {
		return end(b.String())
	}
	from, to := v.differs.From, v.differs.To
	for _, l := range v.reached() {
		if l.of.First >= 0 {
			from, to = min(from, l.of.First), max(to, l.of.Last+1)
		}
	}
	fmt.Fprintf(&b, "\n! the logs differ first between the offsets %d and %d:", from, to)
	for _, l := range v.reached() {
		what := "no batch ends there"
		if l.of.Batches > 0 {
			what = fmt.Sprintf("%d batch, offsets %d to %d, %d records, %d bytes, sha256 %s", l.of.Batches, l.of.First, l.of.Last, l.of.Records, l.of.Bytes, l.of.SHA256[:16])
		}
		fmt.Fprintf(&b, "\n    %s: %s", l.replica.pod, what)
	}
	b.WriteString("\n  Do not delete any volume: kubectl tidemark report collects what is needed to find out why.")
	return end(b.String())
}

func end(s string) string {
	if s == "" {
		return ""
	}
	return s + "\n"
}

// readLines decodes the answer of /v1/checksum.
func readLines(d *json.Decoder) (blocks []checksum.Block, err error) {
	for {
		var l checksum.Line
		if err := d.Decode(&l); err != nil {
			return nil, fmt.Errorf("the answer ended early: %w", err)
		}
		switch {
		case l.Error != "":
			return nil, errors.New(l.Error)
		case l.Done:
			return blocks, nil
		case l.Block == nil || len(blocks) == checksum.MaxBlocks:
			return nil, errors.New("the answer is not one of checksums: are plugin and replicas of one version?")
		}
		blocks = append(blocks, *l.Block)
	}
}
