package replica

// configure takes over changed settings without a restart.
func (n *node) configure(r *Replica, s Settings) {
	if s == n.settings {
		return
	}
	was := n.settings
	if was.FlushEveryBatch && !s.FlushEveryBatch {
		// The flag goes durably before the first weaker acknowledgement.
		if err := n.volume.ClearEveryBatch(); err != nil {
			n.failUnlessFull(err)
			return
		}
	}
	n.settings = s
	n.core.SetOptions(coreOptions(s))
	n.fetcher.Configure(s.FetchMaxWait, s.FetchMaxBytes)
	n.log.Configure(s.SegmentBytes, s.RetentionBytes, s.Retention)
	r.maxMessage.Store(int64(s.MaxMessageBytes))
	n.cfg.Log.Info("settings changed", "flushEveryBatch", s.FlushEveryBatch, "segmentBytes", s.SegmentBytes, "maxMessageBytes", s.MaxMessageBytes,
		"lagTimeMax", s.LagTimeMax.String(), "leaseDuration", s.LeaseDuration.String())
	n.flushSoon()
}
