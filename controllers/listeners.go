package controllers

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// This file finds the addresses that clients outside of the cluster are told. It is pure: what
// it goes by are the spec, the Services as they are, the pods, and their nodes' addresses.

// nodesRecheck is how often the addresses of nodes are looked at again, of which there is no
// event for us.
const nodesRecheck = 5 * time.Minute

// listenersView is what is known of all listeners.
type listenersView struct {
	// Listeners becomes the status.
	Listeners []v1alpha1.ListenerStatus
	// Waiting says what is not known yet, and Conflicts which addresses two replicas have: those
	// are told for none of them.
	Waiting, Conflicts []string
}

// viewListeners finds the addresses of all listeners.
func (o *Observation) viewListeners() listenersView {
	var v listenersView
	for i := range o.Partition.Spec.Listeners {
		v.Listeners = append(v.Listeners, o.viewListener(&o.Partition.Spec.Listeners[i], &v))
	}
	v.dropConflicts(o.Partition)
	return v
}

func (o *Observation) viewListener(l *v1alpha1.ListenerSpec, v *listenersView) v1alpha1.ListenerStatus {
	s := v1alpha1.ListenerStatus{Name: l.Name}
	bootstrap := o.service(o.Partition.ListenerServiceName(l.Name))
	var servers []string
	for _, id := range sortedReplicas(o.Record) {
		a, lacks := o.addressOf(l, id)
		if lacks != "" {
			v.Waiting = append(v.Waiting, lacks)
			continue
		}
		s.Replicas = append(s.Replicas, a)
		if l.Type != v1alpha1.ListenerNodePort {
			continue
		}
		if replicaOf(l, id).AdvertisedHost != "" {
			servers = append(servers, net.JoinHostPort(a.Host, strconv.Itoa(int(a.Port))))
		} else if port := nodePortOf(bootstrap); port != 0 {
			servers = append(servers, net.JoinHostPort(a.Host, strconv.Itoa(int(port))))
		}
	}
	if l.Type == v1alpha1.ListenerLoadBalancer {
		if host := ingressOf(bootstrap, hostOf(o.toldBefore(l.Name).BootstrapServers)); host != "" {
			servers = append(servers, net.JoinHostPort(host, strconv.Itoa(int(l.Port))))
		} else {
			v.Waiting = append(v.Waiting, fmt.Sprintf("Service %s has no load balancer's address yet", o.Partition.ListenerServiceName(l.Name)))
		}
	}
	slices.Sort(servers)
	s.BootstrapServers = strings.Join(slices.Compact(servers), ",")
	return s
}

// addressOf finds where clients of a listener reach a replica, or says what is lacking.
func (o *Observation) addressOf(l *v1alpha1.ListenerSpec, id epoch.ReplicaID) (a v1alpha1.ListenerAddress, lacks string) {
	own := replicaOf(l, id)
	name := o.Partition.ReplicaListenerServiceName(int32(id), l.Name)
	service := o.service(name)
	a = v1alpha1.ListenerAddress{ID: int32(id), Host: own.AdvertisedHost}
	before := hostBefore(o.toldBefore(l.Name), id)
	switch {
	case own.AdvertisedPort != nil:
		a.Port = *own.AdvertisedPort
	case l.Type == v1alpha1.ListenerLoadBalancer:
		a.Port = l.Port
	default:
		a.Port = nodePortOf(service)
	}
	if a.Host == "" && l.Type == v1alpha1.ListenerLoadBalancer {
		a.Host = ingressOf(service, before)
	} else if a.Host == "" {
		a.Host = o.nodeHost(id, service, before)
	}
	switch {
	case a.Port == 0:
		return a, fmt.Sprintf("Service %s has no node port yet", name)
	case a.Host == "" && l.Type == v1alpha1.ListenerLoadBalancer:
		return a, fmt.Sprintf("Service %s has no load balancer's address yet", name)
	case a.Host == "":
		return a, fmt.Sprintf("Service %s waits for a node's address: no node runs the pod %s", name, o.Partition.ReplicaName(int32(id)))
	}
	return a, ""
}

// service is one of our Services for clients outside, nil if there is none that stays.
func (o *Observation) service(name string) *corev1.Service {
	for _, c := range o.Children {
		if s, ok := c.(*corev1.Service); ok && s.Name == name && s.DeletionTimestamp == nil {
			return s
		}
	}
	return nil
}

func nodePortOf(s *corev1.Service) int32 {
	if s == nil || len(s.Spec.Ports) == 0 {
		return 0
	}
	return s.Spec.Ports[0].NodePort
}

// toldBefore is what the status says of a listener.
func (o *Observation) toldBefore(listener string) v1alpha1.ListenerStatus {
	for _, s := range o.Partition.Status.Listeners {
		if s.Name == listener {
			return s
		}
	}
	return v1alpha1.ListenerStatus{}
}

func hostBefore(s v1alpha1.ListenerStatus, id epoch.ReplicaID) string {
	for _, a := range s.Replicas {
		if a.ID == int32(id) {
			return a.Host
		}
	}
	return ""
}

func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return ""
	}
	return host
}

// ingressOf is what a load balancer got, "" if it has nothing yet.
func ingressOf(s *corev1.Service, before string) string {
	if s == nil {
		return ""
	}
	var names, addresses []string
	for _, in := range s.Status.LoadBalancer.Ingress {
		if in.Hostname != "" {
			names = append(names, in.Hostname)
		}
		if in.IP != "" {
			addresses = append(addresses, in.IP)
		}
	}
	return choose(before, names, byFamily(s, addresses))
}

// nodeHost is the address of the node on which a replica's pod runs. While there is none it is
// the last one: the pod is likely to come back there, and clients try again in any case.
func (o *Observation) nodeHost(id epoch.ReplicaID, s *corev1.Service, before string) string {
	pod := o.Pods[id]
	if pod == nil || pod.Spec.NodeName == "" || pod.Status.HostIP == "" {
		return before
	}
	var external, internal []string
	for _, a := range o.NodeAddresses[pod.Spec.NodeName] {
		switch a.Type {
		case corev1.NodeExternalIP:
			external = append(external, a.Address)
		case corev1.NodeInternalIP:
			internal = append(internal, a.Address)
		}
	}
	// What a kubelet says of its own node is all that an operator knows which may not read nodes.
	told := []string{pod.Status.HostIP}
	for _, ip := range pod.Status.HostIPs {
		told = append(told, ip.IP)
	}
	return choose(before, byFamily(s, external), byFamily(s, internal), byFamily(s, told))
}

// byFamily keeps the addresses of the first of the Service's families that there are any of:
// where a Service has no address of a family, nodes do not answer for it.
func byFamily(s *corev1.Service, addresses []string) []string {
	var families []corev1.IPFamily
	if s != nil {
		families = s.Spec.IPFamilies
	}
	if len(families) == 0 {
		families = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
	}
	for _, f := range families {
		var of []string
		for _, text := range addresses {
			if a, err := netip.ParseAddr(text); err == nil && a.Unmap().Is4() == (f == corev1.IPv4Protocol) {
				of = append(of, a.Unmap().String())
			}
		}
		if len(of) > 0 {
			return of
		}
	}
	return nil
}

// choose takes the first list that is not empty, and from it what was told before, so that an
// order that changes changes nothing for clients; else its first.
func choose(before string, lists ...[]string) string {
	for _, l := range lists {
		switch {
		case len(l) == 0:
		case slices.Contains(l, before):
			return before
		default:
			return l[0]
		}
	}
	return ""
}

func sortedReplicas(r epoch.Record) []epoch.ReplicaID {
	ids := make([]epoch.ReplicaID, 0, len(r.Replicas))
	for _, p := range r.Replicas {
		ids = append(ids, p.ID)
	}
	slices.Sort(ids)
	return ids
}

// dropConflicts takes away the addresses that are told for more than one replica, or on more
// than one listener: a client that is sent to the wrong one would never find the leader (H92).
func (v *listenersView) dropConflicts(rp *v1alpha1.ReplicatedPartition) {
	users := map[string][]string{}
	for _, l := range v.Listeners {
		for _, a := range l.Replicas {
			at := addressText(a)
			users[at] = append(users[at], rp.ReplicaListenerServiceName(a.ID, l.Name))
		}
	}
	for i := range v.Listeners {
		l := &v.Listeners[i]
		l.Replicas = slices.DeleteFunc(l.Replicas, func(a v1alpha1.ListenerAddress) bool { return len(users[addressText(a)]) > 1 })
		if len(l.Replicas) == 0 {
			l.Replicas = nil
		}
	}
	for at, names := range users {
		if len(names) > 1 {
			v.Conflicts = append(v.Conflicts, fmt.Sprintf("%s is the address of %s", at, strings.Join(names, " and of ")))
		}
	}
	slices.SortFunc(v.Conflicts, cmp.Compare)
}

func addressText(a v1alpha1.ListenerAddress) string {
	return net.JoinHostPort(strings.ToLower(a.Host), strconv.Itoa(int(a.Port)))
}

// planListeners tells what keeps clients outside of the cluster from being told addresses.
// What the Services are to be like is planned with the other children.
func planListeners(o *Observation, p *Plan) {
	if len(o.Partition.Spec.Listeners) == 0 {
		return
	}
	if len(o.Taken) > 0 {
		p.recheck(foreignRecheck)
		p.note(metav1.ConditionFalse, v1alpha1.ReasonNameConflict,
			"not ours and left alone: %s; delete them, or give the listener another name", strings.Join(o.Taken, ", "))
	}
	v := o.viewListeners()
	if len(v.Conflicts) > 0 {
		p.note(metav1.ConditionFalse, v1alpha1.ReasonAddressConflict,
			"clients outside of the cluster could not tell replicas apart, and are not told this address: %s; change spec.listeners", strings.Join(v.Conflicts, "; "))
	}
	if len(v.Waiting) > 0 {
		p.note(metav1.ConditionTrue, v1alpha1.ReasonWaitingForAddress, "clients outside of the cluster are not told all addresses: %s", strings.Join(v.Waiting, "; "))
	}
	if o.asksNodes() {
		p.recheck(nodesRecheck)
	}
}

// asksNodes reports that some replica is told by the address of its node.
func (o *Observation) asksNodes() bool {
	for i := range o.Partition.Spec.Listeners {
		l := &o.Partition.Spec.Listeners[i]
		if l.Type != v1alpha1.ListenerNodePort {
			continue
		}
		for _, q := range o.Record.Replicas {
			if replicaOf(l, q.ID).AdvertisedHost == "" {
				return true
			}
		}
	}
	return false
}
