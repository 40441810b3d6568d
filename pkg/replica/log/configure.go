package log

// Configure changes what may change while the log is open: the size and age at which later
// segments are rolled, what ApplyRetention keeps, and when ExpireProducers forgets. The rest of
// c is not looked at. The meaning of zero is that of Config; a segment size that Open would
// refuse changes nothing. Only the appender calls it.
func (l *Log) Configure(c Config) {
	cfg := l.cfg
	cfg.SegmentBytes, cfg.SegmentAge = c.SegmentBytes, c.SegmentAge
	cfg.RetentionBytes, cfg.Retention, cfg.ProducerExpiry = c.RetentionBytes, c.Retention, c.ProducerExpiry
	if cfg, err := cfg.withDefaults(); err == nil {
		l.cfg = cfg
	}
}
