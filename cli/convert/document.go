package convert

import (
	"bytes"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// document is an object of Holdfast's, with what was left out on the way to it.
type document struct {
	APIVersion string   `yaml:"apiVersion"`
	Kind       string   `yaml:"kind"`
	Metadata   metadata `yaml:"metadata"`
	Spec       any      `yaml:"spec"`

	notes []string
	// at is what it was made from.
	at *yaml.Node
}

type metadata struct {
	Name        string            `yaml:"name"`
	Namespace   string            `yaml:"namespace,omitempty"`
	Labels      map[string]string `yaml:"labels,omitempty"`
	Annotations map[string]string `yaml:"annotations,omitempty"`
}

type clusterSpec struct {
	Type      string                `yaml:"type"`
	GlusterFS map[string]*yaml.Node `yaml:"glusterfs,omitempty"`
	Torus     map[string]*yaml.Node `yaml:"torus,omitempty,flow"`
	Rest      map[string]*yaml.Node `yaml:",inline"`
}

type nodeSpec struct {
	Type           string                `yaml:"type"`
	Cluster        string                `yaml:"cluster,omitempty"`
	NodeSelector   map[string]string     `yaml:"nodeSelector"`
	StorageNetwork *network              `yaml:"storageNetwork,omitempty"`
	Devices        []string              `yaml:"devices,omitempty"`
	Directories    []string              `yaml:"directories,omitempty"`
	GlusterFS      *glusterNode          `yaml:"glusterfs,omitempty"`
	Torus          *yaml.Node            `yaml:"torus,omitempty"`
	Rest           map[string]*yaml.Node `yaml:",inline"`
}

type network struct {
	IPs []string `yaml:"ips"`
}

type glusterNode struct {
	Cluster string `yaml:"cluster,omitempty"`
	Zone    int    `yaml:"zone"`
}

func newDocument(at *yaml.Node, kind string, m metadata, spec any) document {
	return document{APIVersion: api.GroupVersion.String(), Kind: kind, Metadata: m, Spec: spec, at: at}
}

// note says in the document what was left out of it, and what to do about that.
func (d *document) note(format string, args ...any) {
	d.notes = append(d.notes, fmt.Sprintf(format, args...))
}

// text writes documents one after the other, each with its notes above it.
func text(documents []document) ([]byte, error) {
	var b bytes.Buffer
	for i, d := range documents {
		if i > 0 {
			b.WriteString("---\n")
		}
		for _, n := range d.notes {
			fmt.Fprintf(&b, "# %s\n", strings.Join(strings.Fields(n), " ")) // a comment ends with its line
		}
		var one bytes.Buffer
		e := yaml.NewEncoder(&one)
		e.SetIndent(2)
		if err := e.Encode(d); err != nil {
			return nil, fmt.Errorf("while writing %s %s: %w", d.Kind, d.Metadata.Name, err)
		}
		b.WriteString(words.YAML(one.String()))
	}
	return b.Bytes(), nil
}

// checkName says whether an object may have a name.
func (r *reader) checkName(n *yaml.Node, name string) {
	if faults := validation.IsDNS1123Subdomain(name); len(faults) > 0 {
		r.fault(n, "%q cannot be the name of an object: use small letters, digits, '-' and '.'", name)
	}
}

// refuseTwins finds documents that would be one object, also of several files.
func (r *reader) refuseTwins(all []document) {
	for _, d := range all {
		what, name := d.Kind, d.Metadata.Name
		next := "a host has one node of a cluster, and a namespace one node of a name"
		if what == "StorageCluster" {
			next = "convert one of them by itself, with --name for heketi's, or remove it"
		}
		key := what + "/" + d.Metadata.Namespace + "/" + name
		if first, twice := r.seen[key]; twice && name != "" {
			r.fault(d.at, "%s %s occurs twice, first in %s: %s", what, name, first, next)
			continue
		}
		r.seen[key] = fmt.Sprintf("%s, line %d", r.file, d.at.Line)
	}
}
