package v1alpha1_test

import (
	"strconv"
	"strings"
	"testing"
)

// listener is a spec with one listener for clients outside, with these fields beside name, type
// and port.
func listener(fields string) string {
	return "listeners: [{name: external, type: NodePort, port: 9094" + comma(fields) + "}]"
}

// balanced is the same with load balancers.
func balanced(fields string) string {
	return "listeners: [{name: external, type: LoadBalancer, port: 9094" + comma(fields) + "}]"
}

func comma(fields string) string {
	if fields == "" {
		return ""
	}
	return ", " + fields
}

func host(name string) string {
	return listener(`replicas: [{id: 0, advertisedHost: "` + name + `"}]`)
}

// times repeats a text with its number in the place of %.
func times(n int, text string) string {
	var all []string
	for i := range n {
		all = append(all, strings.ReplaceAll(text, "%", strconv.Itoa(i)))
	}
	return strings.Join(all, ", ")
}

func TestListenersAreRefused(t *testing.T) {
	needsAPI(t)
	ns := newNamespace(t)
	const hosts = "spec.listeners[0].replicas[0].advertisedHost"
	for _, tc := range []struct {
		name, spec string
		want       []string
	}{
		{"without a name", "listeners: [{type: NodePort, port: 9094}]", []string{"spec.listeners[0].name"}},
		{"without a type", "listeners: [{name: a, port: 9094}]", []string{"spec.listeners[0].type"}},
		{"without a port", "listeners: [{name: a, type: NodePort}]", []string{"spec.listeners[0].port"}},
		{"of one name", "listeners: [{name: a, type: NodePort, port: 9094}, {name: a, type: NodePort, port: 9095}]", []string{"spec.listeners[1]", "Duplicate"}},
		{"too many", "listeners: [" + times(5, "{name: a%, type: NodePort, port: 9094}") + "]", []string{"spec.listeners"}},
		{"with a long name", "listeners: [{name: abcdefghijklmnop, type: NodePort, port: 9094}]", []string{"spec.listeners[0].name", "15"}},
		{"with a name that is no label", "listeners: [{name: a.b, type: NodePort, port: 9094}]", []string{"spec.listeners[0].name", "DNS label"}},
		{"with a name that starts with a digit", "listeners: [{name: 0-a, type: NodePort, port: 9094}]", []string{"spec.listeners[0].name", "letter"}},
		{"with a name of ours", "listeners: [{name: replicas, type: NodePort, port: 9094}]", []string{"spec.listeners[0].name", "replicas"}},
		{"of an unknown type", "listeners: [{name: a, type: Ingress, port: 9094}]", []string{"spec.listeners[0].type", "LoadBalancer"}},
		{"on a low port", "listeners: [{name: a, type: NodePort, port: 443}]", []string{"spec.listeners[0].port", "1024"}},
		{"on a high port", "listeners: [{name: a, type: NodePort, port: 65536}]", []string{"spec.listeners[0].port"}},
		{"on the clients' port", "listeners: [{name: a, type: NodePort, port: 9092}]", []string{"spec.listeners[0].port", "9092"}},
		{"on the replicas' port", "listeners: [{name: a, type: NodePort, port: 9093}]", []string{"spec.listeners[0].port", "9093"}},
		{"on the port of HTTP", "listeners: [{name: a, type: NodePort, port: 8080}]", []string{"spec.listeners[0].port", "8080"}},
		{"on one port", "listeners: [{name: a, type: NodePort, port: 9094}, {name: b, type: NodePort, port: 9094}]", []string{"spec.listeners", "share a port"}},
		{"with a replica that cannot be", listener("replicas: [{id: 9}]"), []string{"spec.listeners[0].replicas[0].id"}},
		{"with a replica below zero", listener("replicas: [{id: -1}]"), []string{"spec.listeners[0].replicas[0].id"}},
		{"with a replica twice", listener("replicas: [{id: 1}, {id: 1}]"), []string{"spec.listeners[0].replicas[1]", "Duplicate"}},
		{"with an empty host", host(""), []string{hosts}},
		{"with a long host", host(strings.Repeat("a", 254)), []string{hosts}},
		{"with a host in upper case", host("Kafka.example"), []string{hosts, "lower case"}},
		{"with a host and a port in one", host("kafka.example:9094"), []string{hosts, "DNS name"}},
		{"with an IPv6 address in brackets", host("[2001:db8::1]"), []string{hosts, "without brackets"}},
		{"with an IPv6 address in an unusual form", host("2001:0db8:0:0::1"), []string{hosts, "usual form"}},
		{"with an IPv6 address of an interface", host("fe80::1%eth0"), []string{hosts, "IP address"}},
		{"with half an IPv4 address", host("192.0.2"), []string{hosts, "IP address"}},
		{"with an advertised port of zero", listener("replicas: [{id: 0, advertisedHost: a, advertisedPort: 0}]"), []string{"spec.listeners[0].replicas[0].advertisedPort"}},
		{"with an advertised port and no host", listener("replicas: [{id: 0, advertisedPort: 1}]"), []string{"spec.listeners[0].replicas[0].advertisedPort", "advertisedHost"}},
		{"with one address for two replicas", listener("replicas: [{id: 0, advertisedHost: a, advertisedPort: 1}, {id: 1, advertisedHost: a, advertisedPort: 1}]"), []string{"spec.listeners[0].replicas", "advertisedHost"}},
		{"with one IPv6 address for two replicas", listener(`replicas: [{id: 0, advertisedHost: "2001:db8::1", advertisedPort: 1}, {id: 1, advertisedHost: "2001:db8::1", advertisedPort: 1}]`), []string{"spec.listeners[0].replicas", "advertisedHost"}},
		{"with one address and the listener's port for two replicas", balanced("replicas: [{id: 0, advertisedHost: a}, {id: 1, advertisedHost: a, advertisedPort: 9094}]"), []string{"spec.listeners[0].replicas", "advertisedHost"}},
		{"with one address by a port of the nodes", listener("replicas: [{id: 0, advertisedHost: a, nodePort: 31000}, {id: 1, advertisedHost: a, advertisedPort: 31000}]"), []string{"spec.listeners[0].replicas", "advertisedHost"}},
		{"with one node port twice", listener("replicas: [{id: 0, nodePort: 31000}, {id: 1, nodePort: 31000}]"), []string{"spec.listeners[0]", "nodePort"}},
		{"with one node port for replica and bootstrap", listener("bootstrap: {nodePort: 31000}, replicas: [{id: 1, nodePort: 31000}]"), []string{"spec.listeners[0]", "nodePort"}},
		{"with a node port of zero", listener("replicas: [{id: 0, nodePort: 0}]"), []string{"spec.listeners[0].replicas[0].nodePort"}},
		{"with a bootstrap node port of zero", listener("bootstrap: {nodePort: 0}"), []string{"spec.listeners[0].bootstrap.nodePort"}},
		{"with a node port of a load balancer", balanced("replicas: [{id: 0, nodePort: 31000}]"), []string{"spec.listeners[0]", "nodePort", "type NodePort"}},
		{"with a bootstrap node port of a load balancer", balanced("bootstrap: {nodePort: 31000}"), []string{"spec.listeners[0]", "nodePort", "type NodePort"}},
		{"with a load balancer's class on nodes", listener("loadBalancerClass: a"), []string{"spec.listeners[0].loadBalancerClass", "LoadBalancer"}},
		{"with an empty class", balanced(`loadBalancerClass: ""`), []string{"spec.listeners[0].loadBalancerClass"}},
		{"with a load balancer's sources on nodes", listener("loadBalancerSourceRanges: [192.0.2.0/24]"), []string{"spec.listeners[0].loadBalancerSourceRanges", "LoadBalancer"}},
		{"with sources that are none", balanced("loadBalancerSourceRanges: [192.0.2.1]"), []string{"spec.listeners[0].loadBalancerSourceRanges[0]", "CIDR"}},
		{"with no sources", balanced("loadBalancerSourceRanges: []"), []string{"spec.listeners[0].loadBalancerSourceRanges"}},
		{"with an unknown traffic policy", listener("externalTrafficPolicy: Global"), []string{"spec.listeners[0].externalTrafficPolicy", "Local"}},
		{"with an unknown family policy", listener("ipFamilyPolicy: Any"), []string{"spec.listeners[0].ipFamilyPolicy", "SingleStack"}},
		{"with an unknown family", listener("ipFamilies: [IPv5]"), []string{"spec.listeners[0].ipFamilies[0]", "IPv6"}},
		{"with a family twice", listener("ipFamilies: [IPv6, IPv6]"), []string{"spec.listeners[0].ipFamilies", "twice"}},
		{"with two families in one", listener("ipFamilyPolicy: SingleStack, ipFamilies: [IPv4, IPv6]"), []string{"spec.listeners[0].ipFamilies", "ipFamilyPolicy"}},
		{"with annotations of ours", listener("annotations: {tidemark.io/a: b}"), []string{"spec.listeners[0].annotations", "tidemark.io/"}},
		{"with annotations of ours on a replica", listener("replicas: [{id: 0, annotations: {tidemark.io/a: b}}]"), []string{"spec.listeners[0].replicas[0].annotations", "tidemark.io/"}},
		{"with annotations of ours to begin with", listener("bootstrap: {annotations: {tidemark.io/a: b}}"), []string{"spec.listeners[0].bootstrap.annotations", "tidemark.io/"}},
		{"with long annotations", listener("annotations: {a: " + strings.Repeat("b", 4097) + "}"), []string{"spec.listeners[0].annotations"}},
		{"with too many annotations", listener("annotations: {" + times(33, "x%: b") + "}"), []string{"spec.listeners[0].annotations"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			mustRefuse(t, api.Create(t.Context(), object(t, ns, "x", tc.spec)), tc.want...)
		})
	}
	t.Run("whose Services' names would be too long", func(t *testing.T) {
		mustRefuse(t, api.Create(t.Context(), object(t, ns, strings.Repeat("n", 52), "listeners: [{name: externals, type: NodePort, port: 9094}]")), "spec.listeners", "60 characters")
	})
	t.Run("when the class changes", func(t *testing.T) {
		u := object(t, ns, "class", balanced("loadBalancerClass: a"))
		if err := api.Create(t.Context(), u); err != nil {
			t.Fatal(err)
		}
		for _, after := range []string{balanced("loadBalancerClass: b"), balanced("")} {
			next := object(t, ns, "class", after)
			next.SetResourceVersion(u.GetResourceVersion())
			mustRefuse(t, api.Update(t.Context(), next), "spec.listeners[0].loadBalancerClass", "immutable")
		}
	})
}

func TestListenersAreAllowed(t *testing.T) {
	needsAPI(t)
	ns := newNamespace(t)
	for i, spec := range []string{
		listener(""), balanced(""), host("2001:db8::1"), host("192.0.2.1"), host("kafka-0.example.com"),
		listener("replicas: [{id: 0, advertisedHost: a, nodePort: 31000}, {id: 1, advertisedHost: a, nodePort: 31001}, {id: 2, advertisedHost: a}, {id: 3, advertisedHost: a}]"),
		balanced("replicas: [{id: 0, advertisedHost: a}, {id: 1, advertisedHost: a, advertisedPort: 9095}]"),
		balanced("loadBalancerSourceRanges: [192.0.2.0/24, 2001:db8::/32], externalTrafficPolicy: Local, ipFamilyPolicy: PreferDualStack, ipFamilies: [IPv6, IPv4], annotations: {example.com/a: b}"),
	} {
		if err := api.Create(t.Context(), object(t, ns, "l"+string(rune('a'+i)), spec)); err != nil {
			t.Errorf("%s: %v", spec, err)
		}
	}
	if err := api.Create(t.Context(), object(t, ns, strings.Repeat("n", 52), listener(""))); err != nil {
		t.Errorf("the longest name with the listener external: %v", err)
	}
}
