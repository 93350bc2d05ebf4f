package chart

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	certmanager "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

func TestChart(t *testing.T) {
	want := map[string]map[string]int{
		"defaults": {"Deployment": 1, "Service": 2, "PersistentVolumeClaim": 1, "ServiceAccount": 1, "ConfigMap": 1,
			"NetworkPolicy": 1},
		"minimal": {"Deployment": 1, "Service": 2, "ConfigMap": 1, "NetworkPolicy": 1},
		documented: {"Deployment": 5, "Service": 6, "ServiceAccount": 1, "ConfigMap": 6, "PodDisruptionBudget": 5,
			"NetworkPolicy": 5, "Ingress": 1, "Certificate": 1, "ServiceMonitor": 1, "PrometheusRule": 1},
		"production": {"Deployment": 5, "Service": 6, "ServiceAccount": 1, "ConfigMap": 6, "PodDisruptionBudget": 5,
			"HorizontalPodAutoscaler": 2, "NetworkPolicy": 5, "Ingress": 1, "Certificate": 1, "ServiceMonitor": 1,
			"PrometheusRule": 1},
		"everything": {"Deployment": 5, "Service": 8, "ServiceAccount": 1, "ConfigMap": 6, "PodDisruptionBudget": 5,
			"HorizontalPodAutoscaler": 4, "NetworkPolicy": 5, "Ingress": 1, "ServiceMonitor": 1, "PrometheusRule": 1},
	}

	for _, set := range valueSets {
		t.Run(set, func(t *testing.T) {
			r, err := render(t, readValues(t, set))
			if err != nil {
				t.Fatal(err)
			}

			got, names := map[string]int{}, map[string]bool{}
			for _, object := range r.objects {
				kind := object.GetObjectKind().GroupVersionKind().Kind
				got[kind]++
				accessor, err := meta.Accessor(object)
				if err != nil {
					t.Fatal(err)
				}

				if name := kind + "/" + accessor.GetName(); names[name] || len(accessor.GetName()) > 63 {
					t.Errorf("%s is there twice, or its name is too long", name)
				} else {
					names[name] = true
				}
			}

			if !maps.Equal(got, want[set]) {
				t.Errorf("rendered %v, want %v", got, want[set])
			}

			for _, d := range objectsOf[*apps.Deployment](r.objects) {
				checkDeployment(t, d, r)
			}

			checkSelectors(t, r)
			checkAutoscalers(t, r)
			checkIngress(t, r)
			checkSettings(t, r)
			checkMonitoring(t, r)

			if !strings.Contains(r.notes, "docs/operations.md") {
				t.Errorf("the notes are %q", r.notes)
			}
		})
	}
}

// TestImageByName checks the image of every pod: without values it is the one of the chart's release.
func TestImageByName(t *testing.T) {
	version, err := os.ReadFile("../../VERSION")
	if err != nil {
		t.Fatal(err)
	}

	digest := "sha256:" + strings.Repeat("0", 64)
	released := "trunkline:" + strings.TrimSpace(string(version))
	for given, want := range map[string]string{
		``:             released,
		`mode: single`: released,
		`image: {repository: registry.example.com/trunkline, tag: 1.2.3}`: "registry.example.com/trunkline:1.2.3",
		`image: {repository: trunkline, digest: "` + digest + `"}`:        "trunkline@" + digest,
	} {
		r, err := render(t, []byte(given))
		if err != nil {
			t.Fatalf("%s: %v", given, err)
		}

		deployments := objectsOf[*apps.Deployment](r.objects)
		if len(deployments) != 1 {
			t.Errorf("%q: %d deployments", given, len(deployments))
		}

		for _, d := range deployments {
			if got := d.Spec.Template.Spec.Containers[0].Image; got != want {
				t.Errorf("%q: the image is %s, want %s", given, got, want)
			}
		}
	}
}

func checkDeployment(t *testing.T, d *apps.Deployment, r rendered) {
	pod := &d.Spec.Template.Spec
	container := pod.Containers[0]
	t.Run(d.Name, func(t *testing.T) {
		if container.LivenessProbe.HTTPGet.Path != "/livez" || container.ReadinessProbe.HTTPGet.Path != "/readyz" ||
			container.StartupProbe.HTTPGet.Path != "/livez" {
			t.Error("the probes are not those of the program")
		}

		// A terminating pod must drain only after the balancers have removed it, and must have
		// drained before it is killed.
		settings := settingsOf(t, d, r)
		drain := regexp.MustCompile(`^(\d+)s$`).FindStringSubmatch(settings["drain_timeout"].(string))
		if drain == nil {
			t.Fatalf("drain_timeout is %v", settings["drain_timeout"])
		}

		preStop := container.Lifecycle.PreStop.Sleep.Seconds
		if grace := *pod.TerminationGracePeriodSeconds; grace <= preStop+parseSeconds(t, drain[1]) {
			t.Errorf("%d s of grace for %d s and a drain of %s s", grace, preStop, drain[1])
		}
		if probe := container.ReadinessProbe; int64(probe.PeriodSeconds*probe.FailureThreshold) > preStop {
			t.Errorf("readiness takes longer to fail than the %d s before the drain", preStop)
		}

		security := container.SecurityContext
		if !*pod.SecurityContext.RunAsNonRoot || !*security.ReadOnlyRootFilesystem ||
			*security.AllowPrivilegeEscalation ||
			!slices.Equal(security.Capabilities.Drop, []core.Capability{"ALL"}) ||
			pod.SecurityContext.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault {
			t.Error("the pod is not restricted")
		}

		if *pod.AutomountServiceAccountToken || *pod.EnableServiceLinks {
			t.Error("a token is mounted, or services are put into the environment")
		}
		if selector := labels.SelectorFromSet(d.Spec.Selector.MatchLabels); !selector.Matches(
			labels.Set(d.Spec.Template.Labels)) {
			t.Error("the selector does not match the pods")
		}

		checkMounts(t, pod)
	})
}

// checkMounts checks that secrets are files of declared Secrets, never values.
func checkMounts(t *testing.T, pod *core.PodSpec) {
	t.Helper()
	volumes := map[string]core.Volume{}
	for _, volume := range pod.Volumes {
		volumes[volume.Name] = volume
	}

	paths := map[string]bool{}
	for _, mount := range pod.Containers[0].VolumeMounts {
		volume, ok := volumes[mount.Name]
		if !ok {
			t.Errorf("%s mounts no volume", mount.Name)
		}

		delete(volumes, mount.Name)
		if volume.Projected != nil {
			for _, source := range volume.Projected.Sources {
				paths[mount.MountPath+"/"+source.Secret.Items[0].Path] = true
			}
		}
	}

	if len(volumes) > 0 {
		t.Errorf("not mounted: %v", volumes)
	}

	for _, variable := range pod.Containers[0].Env {
		if strings.HasSuffix(variable.Name, "_FILE") {
			if !paths[variable.Value] {
				t.Errorf("%s names %s, which no Secret fills", variable.Name, variable.Value)
			}
			delete(paths, variable.Value)
		}
	}

	if len(paths) > 0 {
		t.Errorf("no setting reads %v", paths)
	}
}

func checkSelectors(t *testing.T, r rendered) {
	t.Helper()
	deployments := objectsOf[*apps.Deployment](r.objects)
	matching := func(selector map[string]string) (found int) {
		for _, d := range deployments {
			if labels.SelectorFromSet(selector).Matches(labels.Set(d.Spec.Template.Labels)) {
				found++
			}
		}
		return found
	}

	for _, s := range objectsOf[*core.Service](r.objects) {
		if n := matching(s.Spec.Selector); n != 1 {
			t.Errorf("service %s is of %d deployments", s.Name, n)
		}
	}

	for _, b := range objectsOf[*policy.PodDisruptionBudget](r.objects) {
		if n := matching(b.Spec.Selector.MatchLabels); n != 1 {
			t.Errorf("budget %s is of %d deployments", b.Name, n)
		}
	}

	for _, p := range objectsOf[*networking.NetworkPolicy](r.objects) {
		if n := matching(p.Spec.PodSelector.MatchLabels); n != 1 {
			t.Errorf("policy %s is of %d deployments", p.Name, n)
		}
	}

	for _, d := range deployments {
		for _, spread := range d.Spec.Template.Spec.TopologySpreadConstraints {
			if n := matching(spread.LabelSelector.MatchLabels); n != 1 {
				t.Errorf("%s is spread among %d deployments", d.Name, n)
			}
		}
	}
}

func checkAutoscalers(t *testing.T, r rendered) {
	t.Helper()
	for _, h := range objectsOf[*autoscaling.HorizontalPodAutoscaler](r.objects) {
		found := false
		for _, d := range objectsOf[*apps.Deployment](r.objects) {
			if d.Name == h.Spec.ScaleTargetRef.Name {
				found = true
				if d.Spec.Replicas == nil || *d.Spec.Replicas != *h.Spec.MinReplicas {
					t.Errorf("%s is installed with %v replicas, want %d: without them the API server makes one", d.Name,
						d.Spec.Replicas, *h.Spec.MinReplicas)
				}
			}
		}

		if !found {
			t.Errorf("%s scales nothing", h.Name)
		}
	}
}

// TestTheIngressHashesAsComposeDoes checks that a fanout Service makes HAProxy's ingress
// controller choose nodes as deploy/balancer/haproxy.cfg does, and that other Services do not.
func TestTheIngressHashesAsComposeDoes(t *testing.T) {
	text, err := os.ReadFile("../../deploy/balancer/haproxy.cfg")
	if err != nil {
		t.Fatal(err)
	}

	_, backend, _ := strings.Cut(string(text), "\nbackend fanout\n")
	backend, _, _ = strings.Cut(backend, "\nbackend ")
	var want []string

	for line := range strings.Lines(backend) {
		line = strings.TrimSpace(line)
		for _, directive := range []string{"http-request ", "balance ", "hash-"} {
			if strings.HasPrefix(line, directive) {
				want = append(want, line)
			}
		}
	}

	want = append(want, "default-server weight 64")
	r, err := render(t, readValues(t, documented))
	if err != nil {
		t.Fatal(err)
	}

	found := 0
	for _, s := range objectsOf[*core.Service](r.objects) {
		snippet, ok := s.Annotations["haproxy.org/backend-config-snippet"]
		if fanout := s.Name == release+"-trunkline-fanout"; ok != fanout {
			t.Errorf("%s: the annotation is there: %v", s.Name, ok)
		}
		if !ok {
			continue
		}

		found++
		if got := strings.Split(strings.TrimSpace(snippet), "\n"); !slices.Equal(got, want) {
			t.Errorf("%s has %q, want %q", s.Name, got, want)
		}
	}

	if found != 1 || len(want) != 8 {
		t.Errorf("%d Services have it, %d directives", found, len(want))
	}
}

// checkIngress checks that every path leads to an existing port of a Service.
func checkIngress(t *testing.T, r rendered) {
	t.Helper()
	ports := map[string]bool{}
	for _, s := range objectsOf[*core.Service](r.objects) {
		for _, port := range s.Spec.Ports {
			ports[s.Name+":"+port.Name] = true
		}
	}

	for _, i := range objectsOf[*networking.Ingress](r.objects) {
		paths := i.Spec.Rules[0].HTTP.Paths
		if len(paths) < 8 {
			t.Errorf("only %d paths", len(paths))
		}

		for _, path := range paths {
			to := path.Backend.Service
			if !ports[to.Name+":"+to.Port.Name] {
				t.Errorf("%s leads to %s:%s, which is not there", path.Path, to.Name, to.Port.Name)
			}
		}
	}
}

func checkMonitoring(t *testing.T, r rendered) {
	t.Helper()
	components := len(objectsOf[*apps.Deployment](r.objects))
	for _, m := range objectsOf[*monitoring.ServiceMonitor](r.objects) {
		scraped := 0
		for _, s := range objectsOf[*core.Service](r.objects) {
			if labels.SelectorFromSet(m.Spec.Selector.MatchLabels).Matches(labels.Set(s.Labels)) {
				if scraped++; !slices.ContainsFunc(s.Spec.Ports,
					func(p core.ServicePort) bool { return p.Name == m.Spec.Endpoints[0].Port }) {
					t.Errorf("%s has no port %s", s.Name, m.Spec.Endpoints[0].Port)
				}
			}
		}

		if scraped != components {
			t.Errorf("%d of %d components are scraped", scraped, components)
		}
	}

	for _, rules := range objectsOf[*monitoring.PrometheusRule](r.objects) {
		if n := len(rules.Spec.Groups); n < 4 {
			t.Errorf("%d groups of rules", n)
		}

		for _, group := range rules.Spec.Groups {
			for _, rule := range group.Rules {
				if !strings.HasSuffix(rule.Annotations["runbook_url"], "docs/runbook.md#"+strings.ToLower(rule.Alert)) {
					t.Errorf("%s: %s", rule.Alert, rule.Annotations["runbook_url"])
				}
			}
		}
	}

	for _, c := range objectsOf[*certmanager.Certificate](r.objects) {
		if !strings.Contains(r.text, "secretName: "+c.Spec.SecretName) {
			t.Errorf("nothing mounts %s", c.Spec.SecretName)
		}
	}
}

// settingsOf returns trunkline.yaml of a deployment's pods.
func settingsOf(t *testing.T, d *apps.Deployment, r rendered) (settings map[string]any) {
	t.Helper()
	for _, volume := range d.Spec.Template.Spec.Volumes {
		if volume.ConfigMap == nil {
			continue
		}

		for _, c := range objectsOf[*core.ConfigMap](r.objects) {
			if c.Name == volume.ConfigMap.Name {
				if err := yaml.Unmarshal([]byte(c.Data["trunkline.yaml"]), &settings); err != nil {
					t.Fatal(err)
				}
				return settings
			}
		}
	}

	t.Fatalf("%s has no settings", d.Name)
	return nil
}
