package docs

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// probe is a check of a container by HTTP.
type probe struct {
	Get struct{ Path, Port string } `yaml:"httpGet"`
}

// object is what the tests read of an object of Kubernetes.
type object struct {
	Version  string `yaml:"apiVersion"`
	Kind     string
	Metadata struct{ Name string }
	Spec     struct {
		Selector any
		Template struct {
			Metadata struct{ Labels map[string]string }
			Spec     struct {
				Account    string `yaml:"serviceAccountName"`
				Grace      int    `yaml:"terminationGracePeriodSeconds"`
				Containers []struct {
					Ports []struct {
						Name   string
						Number int `yaml:"containerPort"`
					}
					Readiness probe `yaml:"readinessProbe"`
					Liveness  probe `yaml:"livenessProbe"`
					Lifecycle struct {
						PreStop struct{ Sleep struct{ Seconds int } } `yaml:"preStop"`
					}
				}
			}
		}
	}
}

func manifest(t *testing.T) map[string]object {
	t.Helper()
	objects := map[string]object{}
	decoder := yaml.NewDecoder(strings.NewReader(read(t, "operations/kubernetes.yaml")))
	for {
		var o object
		err := decoder.Decode(&o)
		if errors.Is(err, io.EOF) {
			return objects
		}
		require.NoError(t, err)
		require.NotEmpty(t, o.Version, o.Kind)
		objects[o.Kind+" "+o.Metadata.Name] = o
	}
}

func TestTheManifestStopsAProcessCleanly(t *testing.T) {
	t.Parallel()
	const stopTimeout = 30 // seconds, the default of millrace.Config.StopTimeout
	pod := manifest(t)["Deployment shop"].Spec.Template.Spec
	require.Len(t, pod.Containers, 1)
	sleep := pod.Containers[0].Lifecycle.PreStop.Sleep.Seconds
	assert.Positive(t, sleep)
	assert.Greater(t, pod.Grace, sleep+stopTimeout)
}

func TestTheManifestChecksRoutesOfTheProgram(t *testing.T) {
	t.Parallel()
	require.Len(t, manifest(t)["Deployment shop"].Spec.Template.Spec.Containers, 1)
	container := manifest(t)["Deployment shop"].Spec.Template.Spec.Containers[0]
	assert.Equal(t, "operators", container.Readiness.Get.Port)
	assert.Equal(t, "operators", container.Liveness.Get.Port)
	for _, program := range []string{"tutorial/8-deployment.md", "operations/shutdown.md"} {
		text := read(t, program)
		assert.Contains(t, text, `"GET `+container.Readiness.Get.Path+`"`, program)
		assert.Contains(t, text, `"GET `+container.Liveness.Get.Path+`"`, program)
	}
	image := read(t, "tutorial/8-deployment.md")
	for _, port := range container.Ports {
		assert.Contains(t, image, fmt.Sprintf(`":%d"`, port.Number), port.Name)
	}
}

func TestTheObjectsOfTheManifestReferToEachOther(t *testing.T) {
	t.Parallel()
	objects := manifest(t)
	require.Len(t, objects, 5)
	deployment := objects["Deployment shop"].Spec
	labels := map[string]any{"app": deployment.Template.Metadata.Labels["app"]}
	assert.Equal(t, map[string]any{"matchLabels": labels}, deployment.Selector)
	assert.Equal(t, labels, objects["Service shop"].Spec.Selector)
	for _, name := range []string{"Deployment shop", "Job shop-tables"} {
		assert.Contains(t, objects, "ServiceAccount "+objects[name].Spec.Template.Spec.Account, name)
	}
}
