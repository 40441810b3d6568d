package log

import "time"

// Configure changes what may change while the log is open: the size at which later
// segments are rolled, and what ApplyRetention keeps. The meaning of zero is that of
// Config; a segment size that Open would refuse is ignored. Only the appender calls it.
func (l *Log) Configure(segmentBytes, retentionBytes int64, retention time.Duration) {
	cfg := l.cfg
	cfg.SegmentBytes, cfg.RetentionBytes, cfg.Retention = segmentBytes, retentionBytes, retention
	if cfg, err := cfg.withDefaults(); err == nil {
		l.cfg = cfg
	}
}
