package incluster

import (
	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/epoch"
	"github.com/tidemark-io/tidemark/pkg/replica"
	"github.com/tidemark-io/tidemark/pkg/replica/kafka"
)

// listeners are those that a spec wants for clients outside of the cluster, with the addresses
// that the operator has found out.
func (o Options) listeners(p *v1alpha1.ReplicatedPartition) []replica.Listener {
	known := map[string]map[epoch.ReplicaID]kafka.Endpoint{}
	for _, s := range p.Status.Listeners {
		known[s.Name] = map[epoch.ReplicaID]kafka.Endpoint{}
		for _, a := range s.Replicas {
			known[s.Name][epoch.ReplicaID(a.ID)] = kafka.Endpoint{Host: a.Host, Port: a.Port}
		}
	}
	var all []replica.Listener
	for _, l := range p.Spec.Listeners {
		all = append(all, replica.Listener{Name: l.Name, Listen: o.listen(int(l.Port)), Advertised: known[l.Name]})
	}
	return all
}
