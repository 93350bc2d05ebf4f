package chart

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	certmanager "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/yaml"
)

const (
	chartDir  = "../../deploy/helm/trunkline"
	release   = "demo"
	namespace = "contact"
)

// documented is the example of docs/install.md; the others are in testdata.
const documented = "documented"

// valueSets are the names of the values with which the chart is rendered.
var valueSets = []string{"defaults", "minimal", documented, "production", "everything"}

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		core.AddToScheme, apps.AddToScheme, autoscaling.AddToScheme, networking.AddToScheme, policy.AddToScheme,
		certmanager.AddToScheme, monitoring.AddToScheme,
	} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}

	return s
}

// rendered holds the objects of one set of values.
type rendered struct {
	objects []runtime.Object
	text    string // of all objects
	notes   string // NOTES.txt
}

func readValues(t *testing.T, set string) []byte {
	t.Helper()
	if set == documented {
		page, err := os.ReadFile("../../docs/install.md")
		if err != nil {
			t.Fatal(err)
		}

		_, example, _ := bytes.Cut(page, []byte("```yaml\nmode: cluster\n"))
		example, _, found := bytes.Cut(example, []byte("```\n"))
		if !found {
			t.Fatal("docs/install.md has no example of values")
		}

		return append([]byte("mode: cluster\n"), example...)
	}

	text, err := os.ReadFile("testdata/" + set + ".yaml")
	if err != nil {
		t.Fatal(err)
	}

	return text
}

// render renders the chart as helm template does, and validates the values against the schema.
func render(t *testing.T, given []byte) (rendered, error) {
	t.Helper()
	return renderBy(t, given, engine.Engine{Strict: true}.Render)
}

// renderFor is render for a cluster that has objects, as helm upgrade does.
func renderFor(t *testing.T, given []byte, existing cluster) (rendered, error) {
	t.Helper()
	return renderBy(t, given, func(chart *helmchart.Chart, all chartutil.Values) (map[string]string, error) {
		return engine.RenderWithClientProvider(chart, all, existing)
	})
}

func renderBy(t *testing.T, given []byte,
	renderAll func(*helmchart.Chart, chartutil.Values) (map[string]string, error)) (rendered, error) {
	t.Helper()
	chart, err := loader.LoadDir(chartDir)
	if err != nil {
		t.Fatal(err)
	}

	if err := chart.Validate(); err != nil {
		t.Fatal(err)
	}

	set, err := chartutil.ReadValues(given)
	if err != nil {
		t.Fatal(err)
	}

	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.KubeVersion = chartutil.KubeVersion{Version: "v1.33.0", Major: "1", Minor: "33"}
	all, err := chartutil.ToRenderValues(chart, set, chartutil.ReleaseOptions{Name: release, Namespace: namespace},
		capabilities)
	if err != nil {
		return rendered{}, err
	}

	files, err := renderAll(chart, all)
	if err != nil {
		return rendered{}, err
	}

	var out rendered
	decoder := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme(t), scheme(t),
		json.SerializerOptions{Yaml: true, Strict: true})

	for name, text := range files {
		if strings.HasSuffix(name, "NOTES.txt") {
			out.notes = text
			continue
		}

		out.text += text
		if err := decode(decoder, text, &out.objects); err != nil {
			return out, fmt.Errorf("%s: %w\n%s", name, err, text)
		}
	}

	return out, nil
}

func decode(decoder runtime.Decoder, text string, into *[]runtime.Object) error {
	documents := yaml.NewDocumentDecoder(io.NopCloser(strings.NewReader(text)))
	for {
		document := make([]byte, 1<<20)
		n, err := documents.Read(document)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}

		document = bytes.TrimSpace(document[:n])
		if len(document) == 0 {
			continue
		}

		object, _, err := decoder.Decode(document, nil, nil)
		if err != nil {
			return err
		}

		*into = append(*into, object)
	}
}

// objectsOf returns the objects of one type.
func objectsOf[T runtime.Object](objects []runtime.Object) (found []T) {
	for _, object := range objects {
		if one, ok := object.(T); ok {
			found = append(found, one)
		}
	}
	return found
}
