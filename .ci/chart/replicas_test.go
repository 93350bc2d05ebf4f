package chart

import (
	"fmt"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
)

// cluster is the API server that the chart's lookups ask.
type cluster struct{ dynamic.Interface }

// GetClientFor implements engine.ClientProvider.
func (c cluster) GetClientFor(apiVersion, _ string) (dynamic.NamespaceableResourceInterface, bool, error) {
	version, err := schema.ParseGroupVersion(apiVersion)
	return c.Resource(version.WithResource("deployments")), true, err
}

// TestAutoscalingBeginsWithThePodsThatRun renders the chart for a cluster in which the component runs
// already, as helm upgrade does.
func TestAutoscalingBeginsWithThePodsThatRun(t *testing.T) {
	for _, c := range []struct{ running, want int32 }{{5, 5}, {1, 2}, {40, 10}} {
		t.Run(fmt.Sprintf("%d run", c.running), func(t *testing.T) {
			deployment := &apps.Deployment{
				TypeMeta:   meta.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
				ObjectMeta: meta.ObjectMeta{Name: release + "-trunkline-fanout", Namespace: namespace},
				Spec:       apps.DeploymentSpec{Replicas: &c.running},
			}
			running := cluster{fake.NewSimpleDynamicClient(scheme(t), deployment)}
			r, err := renderFor(t, readValues(t, "production"), running)
			if err != nil {
				t.Fatal(err)
			}

			found := false
			for _, d := range objectsOf[*apps.Deployment](r.objects) {
				if d.Name != deployment.Name {
					continue
				}

				found = true
				if *d.Spec.Replicas != c.want {
					t.Errorf("%d replicas, want %d", *d.Spec.Replicas, c.want)
				}
			}

			if !found {
				t.Fatalf("the chart has no deployment %s", deployment.Name)
			}
		})
	}
}

// TestScalingFanoutOutMovesConnections checks the setting without which a pod that the autoscaler
// adds would stay empty.
func TestScalingFanoutOutMovesConnections(t *testing.T) {
	r, err := render(t, readValues(t, "production"))
	if err != nil {
		t.Fatal(err)
	}

	if got := strings.Count(r.text, "rebalance_time: 10m"); got != 1 {
		t.Errorf("fanout.rebalance_time is set in %d components, want in fanout alone", got)
	}

	given := strings.Replace(string(readValues(t, "production")), "gather_window: 50ms", "rebalance_time: 1h", 1)
	r, err = render(t, []byte(given))
	if err != nil || strings.Contains(r.text, "rebalance_time: 10m") ||
		!strings.Contains(r.text, "rebalance_time: 1h") {
		t.Errorf("the chart does not keep the fanout.rebalance_time of the values (%v)", err)
	}
}
