// Package standalone makes the configuration of a replica that is a partition by
// itself: one process, one directory, no Kubernetes. The partition record is kept in a
// file behind the same interface, so everything else is what runs in a cluster.
package standalone

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-logr/logr"

	"github.com/tidemark-io/tidemark/internal/vfs"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/epoch/recordfile"
	"github.com/tidemark-io/tidemark/pkg/replica"
	"github.com/tidemark-io/tidemark/pkg/replica/volume"
)

// Options are the flags of `replica standalone`.
type Options struct {
	DataDir string
	Topic   string
	// Listen is host:port for clients.
	Listen string
	// Advertise is the host:port that clients are told, as behind a proxy or in a container; what
	// is listened on when empty.
	Advertise  string
	HTTPListen string
	// FlushNever leaves it to the kernel when data become durable.
	FlushNever bool
}

// topicName is what Kafka allows, less what cannot name a directory.
var topicName = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,249}$`)

// Config makes the configuration, and the record of a new partition in a new
// directory. The function closes the record's file.
func Config(o Options, logger logr.Logger) (replica.Config, func(), error) {
	if !topicName.MatchString(o.Topic) || o.Topic == "." || o.Topic == ".." {
		return replica.Config{}, nil, fmt.Errorf("--topic %q: use 1 to 249 of a-z, A-Z, 0-9, dot, underscore and hyphen", o.Topic)
	}
	address, err := advertised(o)
	if err != nil {
		return replica.Config{}, nil, err
	}
	volumeDir := filepath.Join(o.DataDir, "volume")
	from, err := imported(volumeDir, o.Topic)
	if err != nil {
		return replica.Config{}, nil, fmt.Errorf("look for an imported log: %w", err)
	}
	records, id, err := openRecord(o.DataDir, from)
	if err != nil {
		return replica.Config{}, nil, err
	}
	settings := replica.DefaultSettings()
	settings.FlushEveryBatch = !o.FlushNever
	return replica.Config{
		ID: 0, Topic: o.Topic, TopicID: id, DataDir: volumeDir,
		Address: address, ClientListen: o.Listen, HTTPListen: o.HTTPListen,
		Records: records, Settings: settings, Log: logger,
	}, func() { _ = records.Close() }, nil
}

// advertised is the address that clients are told: as it was given, else the one that is
// listened on, or this host's name where that is all addresses.
func advertised(o Options) (epoch.Address, error) {
	address, err := parseAddress("--listen", o.Listen)
	if err != nil {
		return epoch.Address{}, err
	}
	if o.Advertise != "" {
		if address, err = parseAddress("--advertise", o.Advertise); err != nil {
			return epoch.Address{}, err
		}
		if everywhere(address.Host) {
			return epoch.Address{}, fmt.Errorf("--advertise %q: clients need the name or the address of one host", o.Advertise)
		}
		return address, nil
	}
	if everywhere(address.Host) {
		if address.Host, err = os.Hostname(); err != nil {
			return epoch.Address{}, fmt.Errorf("--listen %q: find this host's name: %w", o.Listen, err)
		}
	}
	return address, nil
}

// everywhere reports a host that stands for all addresses of this machine.
func everywhere(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || ip != nil && ip.IsUnspecified()
}

func parseAddress(flag, text string) (epoch.Address, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return epoch.Address{}, fmt.Errorf("%s %q: use host:port, such as 127.0.0.1:9092 or [::1]:9092", flag, text)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return epoch.Address{}, fmt.Errorf("%s %q: %q is not a port", flag, text, port)
	}
	return epoch.Address{Host: host, ClientPort: int32(n)}, nil
}

// topicIDFile keeps the topic id beside the record: it is given once.
const topicIDFile = "topic.id"

// imported is what `replica log import` left in the volume, the zero value if that is not there
// or of another topic, which the start then refuses.
func imported(dir, topic string) (volume.Import, error) {
	i, ok, err := volume.Imported(vfs.OS{}, dir)
	if err != nil || !ok || i.Topic != topic {
		return volume.Import{}, err
	}
	return i, nil
}

// openRecord opens the record's file, or makes a new partition of one replica.
func openRecord(dir string, from volume.Import) (*recordfile.Store, epoch.UUID, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, epoch.UUID{}, fmt.Errorf("make --data-dir: %w", err)
	}
	id, err := topicID(filepath.Join(dir, topicIDFile), from.TopicID)
	if err != nil {
		return nil, id, err
	}
	records, err := recordfile.Open(dir)
	if err != nil {
		return nil, id, err
	}
	s, err := records.Get(context.Background())
	switch {
	case errors.Is(err, epoch.ErrNotFound):
		err = createRecord(records, id, from)
	case err == nil && s.Record.TopicID != id:
		err = fmt.Errorf("%s holds the record of topic id %s, %s names %s: files of two directories were mixed", dir, s.Record.TopicID, topicIDFile, id)
	}
	if err != nil {
		_ = records.Close()
		return nil, id, err
	}
	return records, id, nil
}

// createRecord makes the record of a new partition, or that of an imported log: a log that
// is newer than its record would be taken for the sign of a record that went backwards.
func createRecord(records *recordfile.Store, id epoch.UUID, from volume.Import) error {
	r := epoch.New(id, []epoch.ReplicaID{0}, 1, epoch.ChangeID(rand.Text()))
	if !from.TopicID.IsZero() {
		r.LeaderEpoch, r.PartitionEpoch = max(from.LeaderEpoch, 0), epoch.PartitionEpochFor(from.ProducerID)
		r.Changes[0].LeaderEpoch, r.Changes[0].PartitionEpoch = r.LeaderEpoch, r.PartitionEpoch
	}
	_, err := records.Create(context.Background(), r)
	return err
}

func topicID(name string, imported epoch.UUID) (epoch.UUID, error) {
	b, err := os.ReadFile(name)
	if err == nil {
		id, err := epoch.ParseUUID(strings.TrimSpace(string(b)))
		if err != nil {
			return id, fmt.Errorf("%s: %w", name, err)
		}
		return id, nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return epoch.UUID{}, err
	}
	id := imported
	if id.IsZero() {
		_, _ = rand.Read(id[:]) // never fails (crypto/rand)
	}
	return id, vfs.WriteFileAtomic(vfs.OS{}, name, []byte(id.String()+"\n"))
}
