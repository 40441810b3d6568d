package volume

import (
	"errors"
	"fmt"
	"io/fs"
)

// claim makes the volume this replica's, or refuses it.
func (v *Volume) claim() error {
	have, err := v.readIdentity()
	if err != nil {
		return err
	}
	if have != nil {
		if err := v.refuse(*have); err != nil {
			return err
		}
	}
	own := have != nil && have.topicID == v.cfg.TopicID
	asideOwn, err := v.setAside(own)
	if err != nil {
		return fmt.Errorf("set data aside: %w", err)
	}
	if own && !asideOwn {
		v.id = *have
		return nil
	}
	next := identity{topic: v.cfg.Topic, topicID: v.cfg.TopicID, replica: v.cfg.ReplicaID, directoryID: v.cfg.NewUUID(), volumeID: v.cfg.NewUUID()}
	if have != nil {
		next.volumeID = have.volumeID
	}
	v.fresh = true
	return v.writeIdentity(next)
}

// readIdentity returns nil for an identity that is missing or broken: what the volume
// then holds is nobody's (KAFKA-16814).
func (v *Volume) readIdentity() (*identity, error) {
	b, err := v.read(metaFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the volume's identity: %w", err)
	}
	have, err := parseIdentity(b)
	if err != nil {
		v.cfg.Log.Error(err, "the volume's identity is broken; its data are set aside")
		return nil, nil
	}
	return &have, nil
}

// refuse names the volumes that are somebody else's.
func (v *Volume) refuse(have identity) error {
	switch {
	case have.replica != v.cfg.ReplicaID:
		return fmt.Errorf("it belongs to replica %d of topic %s, and this is replica %d: volumes were swapped; give every replica its own volume back",
			have.replica, have.topic, v.cfg.ReplicaID)
	case have.topic != v.cfg.Topic:
		return fmt.Errorf("it belongs to topic %s, and this is topic %s: give the replica its own volume back, or delete this volume if its data are no longer wanted",
			have.topic, v.cfg.Topic)
	}
	return nil
}

// setAside quarantines what this partition must not use, and reports whether the
// partition's own directory was among it.
func (v *Volume) setAside(own bool) (bool, error) {
	ownDir := v.cfg.Topic + "-0"
	strays, err := findStrays(v.fs, v.cfg.Dir, ownDir, v.cfg.TopicID, own)
	if err != nil {
		return false, err
	}
	asideOwn := false
	for _, s := range strays {
		asideOwn = asideOwn || s.name == ownDir
		v.cfg.Log.Info("setting data aside", "directory", s.name, "topicID", s.owner, "reason", s.reason)
	}
	moved, err := quarantine(v.fs, v.cfg.Dir, strays, asideOwn || !own)
	if err != nil {
		return false, err
	}
	if len(moved) > 0 {
		v.cfg.Log.Info("data set aside: remove it when it is not wanted any more", "paths", moved)
	}
	return asideOwn, nil
}
