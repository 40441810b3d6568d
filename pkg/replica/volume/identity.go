package volume

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// metaFile has Kafka's name and format (version 1), with two keys of our own.
const metaFile = "meta.properties"

// identity is who a volume belongs to.
type identity struct {
	topic       string
	topicID     epoch.UUID // as cluster.id: a partition is a cluster of its own to clients
	replica     epoch.ReplicaID
	directoryID epoch.UUID
	volumeID    epoch.UUID
}

func (m identity) format() []byte {
	return fmt.Appendf(nil, "#\nversion=1\ncluster.id=%s\nnode.id=%d\ndirectory.id=%s\ntidemark.topic=%s\ntidemark.volume.id=%s\n",
		m.topicID, m.replica, m.directoryID, m.topic, m.volumeID)
}

// parseIdentity reads what format wrote. Keys that are not known are passed over, as
// Kafka does.
func parseIdentity(b []byte) (identity, error) {
	values, err := properties(b)
	if err != nil {
		return identity{}, err
	}
	if values["version"] != "1" {
		return identity{}, fmt.Errorf("%s: version %.20q, expected 1", metaFile, values["version"])
	}
	m := identity{topic: values["tidemark.topic"]}
	id, err := strconv.ParseInt(values["node.id"], 10, 32)
	if err != nil || id < 0 {
		return identity{}, fmt.Errorf("%s: node.id %.20q is not a replica id", metaFile, values["node.id"])
	}
	m.replica = epoch.ReplicaID(id)
	for key, to := range map[string]*epoch.UUID{"cluster.id": &m.topicID, "directory.id": &m.directoryID, "tidemark.volume.id": &m.volumeID} {
		if *to, err = epoch.ParseUUID(values[key]); err != nil || to.IsZero() {
			return identity{}, fmt.Errorf("%s: %s %.40q is not an id", metaFile, key, values[key])
		}
	}
	return m, nil
}

// properties are the lines of meta.properties.
func properties(b []byte) (map[string]string, error) {
	values := map[string]string{}
	for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
		line := strings.TrimSpace(s.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok {
			return nil, fmt.Errorf("%s: line %.40q is not key=value", metaFile, line)
		}
		values[key] = value
	}
	return values, nil
}

func newUUID() epoch.UUID {
	var u epoch.UUID
	_, _ = rand.Read(u[:]) // never fails (crypto/rand)
	u[6], u[8] = u[6]&0x0f|0x40, u[8]&0x3f|0x80
	return u
}
