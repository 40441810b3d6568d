package log

import (
	"slices"
	"strings"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// names looks for files that no log needs.
func (v *verifier) names() {
	for _, name := range v.in.Names {
		v.fileNamed(name)
	}
}

func (v *verifier) fileNamed(name string) {
	at := v.path(name)
	switch {
	case name == epochFile, name == metadataFile, segmentFile(name, v.bases):
	case strings.HasSuffix(name, ".swap"):
		v.sum.UnfinishedSwap = true
		v.find(Warning, at, -1, "the next start completes it, or refuses and says why", "is an unfinished compaction")
	case leftover(name, v.bases):
		v.find(Warning, at, -1, "the next start removes it", "is left of unfinished work, or an index without its segment")
	case strings.HasSuffix(name, suffixTxnIndex):
		if f, err := v.in.open(name); err == nil {
			if f.size > 0 {
				v.find(Warning, at, -1, "Tidemark has no transactions and serves their records", "says which transactions were aborted")
			}
			_ = f.Close()
		}
	default:
		v.find(Warning, at, -1, remedyTellWhat, "is not a file of a log")
	}
}

// segmentFile reports a file that belongs to a segment that is there, or a snapshot.
func segmentFile(name string, bases []epoch.Offset) bool {
	for _, suffix := range []string{suffixLog, suffixIndex, suffixTimeIndex} {
		if base, ok := parseFileName(name, suffix); ok {
			return slices.Contains(bases, base)
		}
	}
	_, ok := parseFileName(name, suffixSnapshot)
	return ok
}
