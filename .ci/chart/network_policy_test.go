package chart

import (
	"slices"
	"testing"

	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
)

// By default the pods accept connections from everywhere on the public port, but on the metrics
// port, which has no authentication, only from the namespace of the monitoring.
func TestConnectionsToPodsAreRestrictedByDefault(t *testing.T) {
	r, err := render(t, readValues(t, "defaults"))
	if err != nil {
		t.Fatal(err)
	}

	policies := objectsOf[*networking.NetworkPolicy](r.objects)
	if len(policies) != 1 {
		t.Fatalf("%d policies", len(policies))
	}

	spec := policies[0].Spec
	if !slices.Equal(spec.PolicyTypes, []networking.PolicyType{networking.PolicyTypeIngress}) || len(spec.Egress) != 0 {
		t.Errorf("policy types %v, egress %v", spec.PolicyTypes, spec.Egress)
	}

	from := map[string][]networking.NetworkPolicyPeer{}
	for _, rule := range spec.Ingress {
		if len(rule.Ports) == 0 {
			t.Errorf("a rule opens all ports: %+v", rule)
		}

		for _, port := range rule.Ports {
			if port.Port == nil || port.Protocol == nil || *port.Protocol != core.ProtocolTCP {
				t.Fatalf("port %+v", port)
			}
			from[port.Port.String()] = rule.From
		}
	}

	if peers, ok := from["public"]; !ok || len(peers) != 0 || len(from) != 2 {
		t.Errorf("ports %+v: want public, open to all, and metrics", from)
	}

	peers := from["metrics"]
	if len(peers) != 1 || peers[0].NamespaceSelector == nil ||
		peers[0].NamespaceSelector.MatchLabels["kubernetes.io/metadata.name"] != "monitoring" {
		t.Errorf("metrics are open to %+v", peers)
	}
}
