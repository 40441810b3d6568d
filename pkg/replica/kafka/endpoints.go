package kafka

import (
	"slices"

	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// Endpoint is where clients reach a replica. Host is a name or an address, an IPv6 one
// without brackets, as in Kafka's answers.
type Endpoint struct {
	Host string
	Port int32
}

// shown is the partition as the clients of this listener are told of it: with the addresses
// of the listener that they came in on (KIP-103), and never with an older leader than
// before. A replica without an address there is no broker to them, and offline, as in Kafka.
func (s *Server) shown() View {
	v := s.epochs.monotonic(s.Partition.View())
	if s.Listener != External {
		return v
	}
	replicas := slices.Clone(v.Replicas)
	v.Offline = slices.Clone(v.Offline)
	for i := range replicas {
		n := &replicas[i]
		at, known := s.Advertised(n.ID)
		if !known || n.Address.Host == "" {
			at = Endpoint{}
			if !slices.Contains(v.Offline, n.ID) {
				v.Offline = append(v.Offline, n.ID)
			}
		}
		n.Address = epoch.Address{Host: at.Host, ClientPort: at.Port}
	}
	v.Replicas = replicas
	return v
}

// port is the port of a shown address that belongs to the listener.
func (s *Server) port(a epoch.Address) int32 {
	if s.Listener == Replication {
		return a.ReplicationPort
	}
	return a.ClientPort
}
