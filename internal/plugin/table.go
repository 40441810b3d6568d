package plugin

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
)

// narrowest is the width that tables are made for at least.
const narrowest = 80

// barWidths: a bar takes what is left of a line, within these bounds; below them there is none.
const (
	barMin = 8
	barMax = 32
)

// statusText is the picture of one partition for a screen of that many columns.
func statusText(rp *v1alpha1.ReplicatedPartition, name string, width int) string {
	width = max(width, narrowest)
	var b strings.Builder
	write := func(s string) { fmt.Fprintln(&b, strings.TrimRight(s, " ")) }
	ready := condition(rp, v1alpha1.ConditionReady)
	write(fit(fmt.Sprintf("%s  %s", name, verdict(ready)), width))
	s := rp.Status
	for _, line := range flow([]string{
		"leader " + orUnknown(s.Leader), "epoch " + counted(s.TopicID, s.LeaderEpoch), "partition epoch " + counted(s.TopicID, s.PartitionEpoch),
		"min ISR " + counted(s.TopicID, s.MinInSyncReplicas), "HW " + number(s.HighWatermark), "LEO " + number(s.LogEndOffset),
		"log start " + number(s.LogStartOffset), "volumes " + volumeSize(rp),
	}, width-2) {
		write("  " + line)
	}
	for _, l := range s.Listeners {
		for _, part := range wrap("listener "+l.Name+" "+orUnknown(strings.ReplaceAll(l.BootstrapServers, ",", ", ")), width-2) {
			write("  " + part)
		}
	}
	for _, line := range replicaTable(rp, width) {
		write(line)
	}
	for _, line := range remarks(rp) {
		for i, part := range wrap(line, width-4) {
			write(map[bool]string{true: "  ! ", false: "    "}[i == 0] + part)
		}
	}
	return b.String()
}

func volumeSize(rp *v1alpha1.ReplicatedPartition) string {
	if rp.Spec.Storage.Size.IsZero() {
		return "?"
	}
	return rp.Spec.Storage.Size.String()
}

// verdict is a condition in two words.
func verdict(c *metav1.Condition) string {
	switch {
	case c == nil:
		return "Ready: ?"
	case c.Status == metav1.ConditionTrue:
		return fmt.Sprintf("Ready (%s)", c.Reason)
	case c.Status == metav1.ConditionFalse:
		return fmt.Sprintf("NOT READY (%s)", c.Reason)
	}
	return fmt.Sprintf("Ready: ? (%s)", c.Reason)
}

func condition(rp *v1alpha1.ReplicatedPartition, kind string) *metav1.Condition {
	for i := range rp.Status.Conditions {
		if c := &rp.Status.Conditions[i]; c.Type == kind {
			return c
		}
	}
	return nil
}

// remarks are what is not as wished, the newest reason first to look at.
func remarks(rp *v1alpha1.ReplicatedPartition) (lines []string) {
	if rp.DeletionTimestamp != nil {
		lines = append(lines, "it is being deleted")
	}
	if rp.Status.ObservedGeneration < rp.Generation {
		lines = append(lines, fmt.Sprintf("the operator has not seen this spec yet: status is of generation %d, the spec of %d", rp.Status.ObservedGeneration, rp.Generation))
	}
	for _, kind := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionAvailable, v1alpha1.ConditionInSync, v1alpha1.ConditionProgressing} {
		c := condition(rp, kind)
		if c == nil || c.Status == metav1.ConditionTrue && kind != v1alpha1.ConditionProgressing || c.Reason == v1alpha1.ReasonComplete {
			continue
		}
		line := fmt.Sprintf("%s is %s (%s): %s", kind, c.Status, c.Reason, c.Message)
		if kind == v1alpha1.ConditionAvailable && sameTrouble(c, condition(rp, v1alpha1.ConditionReady)) {
			continue
		}
		lines = append(lines, line)
	}
	for _, r := range rp.Status.Replicas {
		if r.Message != "" {
			lines = append(lines, fmt.Sprintf("%s: %s", r.Name, r.Message))
		}
	}
	if u := rp.Status.UncleanElection; u != nil {
		lines = append(lines, fmt.Sprintf("unclean election in epoch %d: %s was elected from outside of the ISR; records lost: %s", u.LeaderEpoch, u.Leader, number(u.LostRecords)))
	}
	return lines
}

func sameTrouble(a, b *metav1.Condition) bool {
	return b != nil && a.Reason == b.Reason && a.Message == b.Message
}

// column of the table. Numbers stand to the right.
type column struct {
	head  string
	right bool
	cells []string
	// least is how narrow the column may become; 0 for not at all.
	least int
}

func (c *column) width() int {
	w := len(c.head)
	for _, s := range c.cells {
		w = max(w, utf8.RuneCountInString(s))
	}
	return w
}

func replicaTable(rp *v1alpha1.ReplicatedPartition, width int) []string {
	if len(rp.Status.Replicas) == 0 {
		return []string{"  no replica is known yet"}
	}
	columns := []*column{
		{head: "REPLICA", least: 7}, {head: "ROLE"}, {head: "NODE", least: 5}, {head: "SYNC"},
		{head: "EPOCH", right: true}, {head: "HW", right: true}, {head: "LEO", right: true}, {head: "LAG", right: true},
	}
	for _, r := range rp.Status.Replicas {
		sync := "no"
		if r.InSync {
			sync = "yes"
		}
		for i, cell := range []string{orUnknown(r.Name), orUnknown(string(r.Role)), orUnknown(r.Node), sync,
			number(r.LeaderEpoch), number(r.HighWatermark), number(r.LogEndOffset), number(r.Lag)} {
			columns[i].cells = append(columns[i].cells, cell)
		}
	}
	widths, left := share(columns, width-2)
	rows := []string{tableRow(columns, widths, func(c *column) string { return c.head })}
	for i, r := range rp.Status.Replicas {
		line := tableRow(columns, widths, func(c *column) string { return c.cells[i] })
		if left >= barMin {
			line += "  " + bar(r, rp.Status, min(left, barMax)-2)
		}
		rows = append(rows, line)
	}
	return rows
}

// share gives each column its width, and says what is left for a bar. Names give way first,
// the longest most: the bar tells more than the middle of a node's name. Where no bar fits
// all the same, names keep what they can.
func share(columns []*column, width int) (widths []int, left int) {
	for _, reserve := range []int{barMin, 0} {
		if widths, left = narrow(columns, width-reserve); left >= 0 {
			return widths, left + reserve
		}
	}
	return widths, 0
}

// narrow takes from the names until the columns fit. left is negative if they do not.
func narrow(columns []*column, width int) (widths []int, left int) {
	left = width
	for _, c := range columns {
		widths = append(widths, c.width())
		left -= c.width() + 2
	}
	for ; left < 0; left++ {
		widest := -1
		for i, c := range columns {
			if c.least > 0 && widths[i] > c.least && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	return widths, left
}

func tableRow(columns []*column, widths []int, cell func(*column) string) string {
	parts := make([]string, len(columns))
	for i, c := range columns {
		s := shorten(cell(c), widths[i])
		if pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(s)); c.right {
			parts[i] = pad + s
		} else {
			parts[i] = s + pad
		}
	}
	return "  " + strings.Join(parts, "  ")
}

// shorten takes the middle out of a name: its beginning says what it is, its end which.
func shorten(s string, width int) string {
	r := []rune(s)
	if len(r) <= width {
		return s
	}
	tail := min((width-2+1)/2, len(r))
	return string(r[:width-2-tail]) + ".." + string(r[len(r)-tail:])
}

// fit cuts a line that is too long.
func fit(s string, width int) string {
	r := []rune(s)
	if len(r) <= width {
		return s
	}
	return string(r[:width-2]) + ".."
}

// bar shows a replica's log beside the leader's, from the log's start on: "=" as far as it
// reaches, "|" where its high watermark is. It is full only for a log that ends where the
// leader's does.
func bar(r v1alpha1.ReplicaStatus, s v1alpha1.ReplicatedPartitionStatus, width int) string {
	if r.LogEndOffset == nil || s.LogEndOffset == nil {
		return "[" + fit("?", width) + strings.Repeat(" ", width-1) + "]"
	}
	var start int64
	if s.LogStartOffset != nil {
		start = *s.LogStartOffset
	}
	cells := []byte(strings.Repeat(" ", width))
	for i := range cells[:cellsOf(*r.LogEndOffset, start, *s.LogEndOffset, width)] {
		cells[i] = '='
	}
	if r.HighWatermark != nil {
		cells[max(0, cellsOf(*r.HighWatermark, start, *s.LogEndOffset, width)-1)] = '|'
	}
	return "[" + string(cells) + "]"
}

// cellsOf is how many of the cells from start to end an offset reaches, rounded down.
func cellsOf(o, start, end int64, width int) int {
	switch {
	case o >= end:
		return width
	case o <= start:
		return 0
	}
	// in floating point, since offsets may be large; but never a full bar by rounding
	return min(width-1, int(float64(o-start)/float64(end-start)*float64(width)))
}

func orUnknown(s string) string {
	if s == "" {
		return "?"
	}
	return s
}

func number[T int32 | int64](n *T) string {
	if n == nil {
		return "?"
	}
	return fmt.Sprint(*n)
}

// counted is a number that means something only once there is a record.
func counted[T int32 | int64](topicID string, n T) string {
	if topicID == "" {
		return "?"
	}
	return fmt.Sprint(n)
}

// flow sets words side by side, as many as fit into a line.
func flow(words []string, width int) (lines []string) {
	for _, w := range words {
		if n := len(lines) - 1; n >= 0 && len(lines[n])+2+len(w) <= width {
			lines[n] += "  " + w
			continue
		}
		lines = append(lines, w)
	}
	return lines
}

// wrap breaks a text between words; what is longer than a line stands in one of its own.
func wrap(s string, width int) []string {
	var lines []string
	for word := range strings.FieldsSeq(s) {
		if n := len(lines) - 1; n >= 0 && utf8.RuneCountInString(lines[n])+1+utf8.RuneCountInString(word) <= width {
			lines[n] += " " + word
			continue
		}
		lines = append(lines, word)
	}
	return slices.Clip(lines)
}
