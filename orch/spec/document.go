package spec

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/holdfast-storage/holdfast/orch/refusal"
)

// The kinds of services that Holdfast has.
const (
	kindHost   = "host"
	kindMon    = "mon"
	kindMgr    = "mgr"
	kindOSD    = "osd"
	kindMDS    = "mds"
	kindRGW    = "rgw"
	kindMirror = "rbd-mirror"
)

// document is a document while it is translated. Translators take out what they know; what is left
// is refused.
type document struct {
	kind, id string
	// service is its name.
	service   string
	placement map[string]any
	// fields are all others, those of its part spec among them.
	fields map[string]any
	// problem is the first that was found.
	problem *refusal.Error
}

// parseAll parses the documents of a call.
func parseAll(texts []json.RawMessage) ([]*document, error) {
	var docs []*document
	services := map[string]bool{}
	for i, text := range texts {
		d, err := parse(text)
		if err != nil {
			return nil, refusal.Errorf("document %d: %v", i+1, err)
		}
		if services[d.service] {
			return nil, refusal.Errorf("%s: two documents of one call are about it: keep one of them", d.service)
		}
		services[d.service] = true
		docs = append(docs, d)
	}
	return docs, nil
}

// parse parses a document, in the form that has a part spec and in the older one that has none.
func parse(text []byte) (*document, error) {
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, fmt.Errorf("it is no JSON object: %w", err)
	}
	d := &document{fields: fields}
	if inner, ok := fields["spec"].(map[string]any); ok {
		delete(fields, "spec")
		maps.Copy(fields, inner)
	}
	d.name()
	if d.kind == "" {
		return nil, fmt.Errorf("it has no service_type")
	}
	d.placement, _ = fields["placement"].(map[string]any)
	if p, is := fields["placement"]; is && d.placement == nil && !isEmpty(p) {
		return nil, fmt.Errorf("placement must be an object, as PlacementSpec.to_json makes it")
	}
	delete(fields, "placement")
	dropEmpty(d.placement)
	d.dropDefaults()
	if d.problem != nil {
		return nil, d.problem
	}
	return d, nil
}

// name takes the names of the service out of the fields.
func (d *document) name() {
	d.kind, d.id = d.text("service_type"), d.text("service_id")
	service := d.text("service_name")
	kind, id, _ := strings.Cut(service, ".")
	host := d.text("hostname")
	if d.kind == "" && service == "" && host != "" {
		d.kind = kindHost // a HostSpec of Ceph 16 has no type
	}
	d.kind, d.id = cmp.Or(d.kind, kind), cmp.Or(d.id, id)
	if d.kind == kindHost {
		d.id = host
	}
	if d.kind == kindOSD && d.id == "" && d.fields["unmanaged"] != true {
		d.id = defaultGroup
	}
	d.service = nameOf(d.kind, d.id)
}

// defaults are values of fields that say nothing, beside empty ones.
var defaults = map[string]map[string][]any{
	"": {"termination_grace_period_seconds": {30.0}, "certificate_source": {"cephadm-signed"}},
	kindOSD: {
		"method": {"lvm", "raw"}, "objectstore": {"bluestore"}, "filter_logic": {"AND", "and"},
		"osds_per_device": {1.0}, "data_allocate_fraction": {1.0},
	},
	kindRGW: {"rgw_frontend_type": {"beast"}, "rgw_exit_timeout_secs": {120.0}},
}

// dropDefaults takes out what says nothing.
func (d *document) dropDefaults() {
	delete(d.fields, previewOnly) // see Preview
	dropEmpty(d.fields)
	for _, kind := range []string{"", d.kind} {
		for name, values := range defaults[kind] {
			switch value := d.fields[name].(type) {
			case string, float64:
				if slices.Contains(values, value) {
					delete(d.fields, name)
				}
			}
		}
	}
}

func dropEmpty(fields map[string]any) {
	maps.DeleteFunc(fields, func(_ string, value any) bool { return isEmpty(value) })
}

// isEmpty says whether a value is one that Ceph's classes leave out.
func isEmpty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

// refuse notes what is wrong with a field.
func (d *document) refuse(field, format string, values ...any) {
	if d.problem == nil {
		d.problem = refusal.Errorf("%s: %s: %s", d.service, field, fmt.Sprintf(format, values...))
	}
}

// take takes a field out.
func (d *document) take(name string) any {
	value := d.fields[name]
	delete(d.fields, name)
	return value
}

// text takes a text out; empty where there is none.
func (d *document) text(name string) string {
	value := d.take(name)
	s, ok := value.(string)
	if !ok && value != nil {
		d.refuse(name, "it must be a text")
	}
	return s
}

// number takes a whole number out; zero where there is none.
func (d *document) number(name string, least, most int64) int64 {
	value := d.take(name)
	if value == nil {
		return 0
	}
	n, ok := whole(value)
	if !ok || n < least || n > most {
		d.refuse(name, "it must be a whole number from %d to %d", least, most)
	}
	return n
}

// whole reads a whole number.
func whole(value any) (int64, bool) {
	switch v := value.(type) {
	case float64:
		return int64(v), v == math.Trunc(v) && math.Abs(v) < 1<<53
	case string:
		n, err := strconv.ParseInt(v, 10, 64)
		return n, err == nil
	}
	return 0, false
}

// flag takes a truth out; false where there is none.
func (d *document) flag(name string) bool {
	value := d.take(name)
	is, ok := value.(bool)
	if !ok && value != nil {
		d.refuse(name, "it must be true or false")
	}
	return is
}

// list takes a list of texts out; one text is a list of it.
func (d *document) list(name string) []string {
	values, err := texts(d.take(name))
	if err != nil {
		d.refuse(name, "%v", err)
	}
	return values
}

// texts reads a list of texts.
func texts(value any) (all []string, err error) {
	switch v := value.(type) {
	case nil:
	case string:
		return []string{v}, nil
	case []any:
		for _, one := range v {
			s, ok := one.(string)
			if !ok {
				return nil, fmt.Errorf("it must be a list of texts")
			}
			all = append(all, s)
		}
	default:
		return nil, fmt.Errorf("it must be a list of texts")
	}
	return all, nil
}

// finish refuses what no translator took.
func (d *document) finish() {
	for _, name := range slices.Sorted(maps.Keys(d.fields)) {
		why := cmp.Or(unsupported[name], "Holdfast does not know this field: leave it out")
		d.refuse(name, "%s", why)
	}
}

// write is a Write of the document.
func (d *document) write(object *unstructured.Unstructured, notes ...string) Write {
	return Write{
		Service: d.service, Manager: Manager(d.service), Object: object, Notes: notes,
		Answer: fmt.Sprintf("Scheduled %s update...", d.service),
	}
}

// unsupported says why a field that Ceph has is not supported.
var unsupported = map[string]string{
	"unmanaged": "Holdfast manages each service that it has: 'ceph orch pause' keeps it from changing anything",
	"config":    "options of Ceph belong into spec.ceph.config of the StorageCluster: set them there",
	"networks":  "daemons listen in spec.network.public of the StorageCluster: leave the field out",

	"extra_container_args":  noContainers,
	"extra_entrypoint_args": noContainers,
	"custom_configs":        noContainers,

	"crush_locations": "a host's labels say where it is, such as topology.holdfast.io/rack: label the Host",
	"oob":             "Holdfast does not reach management controllers: leave it out",

	"actuators":              "Holdfast does not know how many actuators a disk has: leave it out",
	"journal_devices":        onlyBlueStore,
	"journal_size":           onlyBlueStore,
	"objectstore":            onlyBlueStore,
	"data_directories":       "Holdfast makes OSDs on whole disks: select them by data_devices",
	"data_allocate_fraction": "an OSD takes its whole disk: leave the field out",
	"method":                 "Holdfast divides disks by partitions: leave the field out",
	"tpm2":                   "keys of encrypted OSDs are in Secrets: leave the field out",
	"osd_id_claims":          "'ceph orch osd rm ID --replace' keeps the number of an OSD: leave the field out",

	"rgw_realm":                    noMultisite,
	"rgw_zone":                     noMultisite,
	"rgw_zonegroup":                noMultisite,
	"rgw_realm_token":              noMultisite,
	"zone_endpoints":               noMultisite,
	"zonegroup_hostnames":          noMultisite,
	"update_endpoints":             noMultisite,
	"subcluster":                   noMultisite,
	"rgw_frontend_type":            "gateways use beast: leave the field out",
	"rgw_frontend_extra_args":      "Holdfast sets the gateways' frontends: leave the field out",
	"rgw_frontend_ssl_certificate": certificateBySecret,
	"ssl_cert":                     certificateBySecret,
	"ssl_key":                      certificateBySecret,
	"generate_cert":                certificateBySecret,
}

// Reasons that several fields have.
const (
	noContainers        = "Holdfast runs no containers: leave the field out"
	onlyBlueStore       = "Holdfast makes OSDs with BlueStore alone: leave the field out"
	noMultisite         = "Holdfast has no multisite: each ObjectStore has a zone of its own; leave the field out"
	certificateBySecret = "Holdfast takes certificates from a Secret alone: name one of type kubernetes.io/tls in " +
		"spec.gateways.tls.secretName of the ObjectStore"
)
