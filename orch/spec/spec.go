// Package spec translates the documents of 'ceph orch apply' (ServiceSpec and HostSpec of Ceph's
// package ceph.deployment) into Holdfast's resources, and those into documents. It is pure: no
// clock, no I/O.
//
// Each field of a document is mapped, or harmless at its default, or refused by its name. Nothing
// of a document is stored beside the resources: 'ceph orch ls --export' shows what they declare.
package spec

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/orch/refusal"
)

// mostDocs bounds the documents of one call: each is checked before the answer, for which a call has
// two seconds.
const mostDocs = 200

// managerPrefix begins the names of field managers, and mostManager is how long they may be.
const managerPrefix, mostManager = "ceph-orch.", 128

// Manager is the field manager of what 'ceph orch' declares of something, such as "osd.hdd".
func Manager(of string) string {
	name := managerPrefix + of
	if len(name) <= mostManager {
		return name
	}
	sum := sha256.Sum256([]byte(of))
	hash := hex.EncodeToString(sum[:])[:16]
	return strings.ToValidUTF8(name[:mostManager-len(hash)-1], "") + "-" + hash
}

// Write is one object to apply, by server-side apply with a field manager of its own.
type Write struct {
	// Service is what the object belongs to, as 'ceph orch ls' names it: "mon", "mds.home",
	// "osd.hdd"; "host.h4" for a host.
	Service string
	// Manager is the field manager: "ceph-orch." and Service.
	Manager string
	// Object has only the fields that the document sets. It is nil where nothing is to be written.
	Object *unstructured.Unstructured
	// Answer is what Ceph's own orchestrator says on success. Of several Writes of one document the
	// first has it.
	Answer string
	// Notes are sentences for the user.
	Notes []string
}

// Request is one call of apply.
type Request struct {
	// View is the cluster as the leader knows it. It is only read.
	View *engine.View
	// Docs are the documents, as JSON.
	Docs []json.RawMessage
	// NoOverwrite leaves services and hosts alone that are there.
	NoOverwrite bool
}

// call is a Request while it is answered.
type call struct {
	view *engine.View
	// hosts are the view's, with the labels that documents of the same call give them.
	hosts []api.Host
	// used are those that the cluster uses, coming those that documents of the same call add.
	used, coming map[string]bool
	// declared are the documents of what is declared now.
	declared map[string]map[string]any
	// unchanged has a document that says what is declared already change nothing.
	unchanged bool
}

// translators translate the documents of a kind of service.
var translators = map[string]func(c *call, d *document) []Write{
	kindHost: (*call).host, kindMon: (*call).mon, kindMgr: (*call).mgr, kindOSD: (*call).osd,
	kindMDS: (*call).mds, kindRGW: (*call).rgw, kindMirror: (*call).mirror,
}

// Writes translates all documents of a call, or none: the error is a *refusal.Error that names the
// service and the field. Writes are in the order of the documents.
func Writes(r Request) ([]Write, error) { return writes(r, true) }

func writes(r Request, unchanged bool) ([]Write, error) {
	if len(r.Docs) > mostDocs {
		return nil, refusal.Errorf("%d documents are too many for one call: apply at most %d at a time", len(r.Docs),
			mostDocs)
	}
	docs, err := parseAll(r.Docs)
	if err != nil {
		return nil, err
	}
	c := &call{view: r.View, hosts: r.View.Hosts, declared: Documents(r.View), unchanged: unchanged}
	c.label(docs)
	var all []Write
	for _, d := range docs {
		if what := c.deleted(d); what != "" {
			return nil, refusal.Errorf("%s: %s is being deleted: apply the document again when it is gone", d.service,
				what)
		}
		if r.NoOverwrite && c.isThere(d) {
			all = append(all, c.skipped(d))
			continue
		}
		w, err := c.translate(d)
		if err != nil {
			return nil, err
		}
		all = append(all, w...)
	}
	return all, nil
}

// deleted is the object of a document that is being deleted, in words; empty where there is none.
func (c *call) deleted(d *document) string {
	for _, s := range Services(c.view) {
		if s.Name == d.service && s.IsDeleted() {
			return s.Of.ResourceKind() + " " + s.Of.GetName()
		}
	}
	if h := c.hostNamed(d.id); d.kind == kindHost && h != nil {
		if n := c.nodeOf(h); n != nil && n.DeletionTimestamp != nil {
			return "StorageNode " + n.Name
		}
	}
	return ""
}

// translate translates a document.
func (c *call) translate(d *document) ([]Write, error) {
	translator := translators[d.kind]
	switch {
	case c.saysNothingNew(d):
		return []Write{d.write(nil)}, nil
	case translator == nil:
		return nil, refusal.Errorf("not supported by Holdfast: %s", d.service)
	}
	w := translator(c, d)
	if d.finish(); d.problem != nil {
		return nil, d.problem
	}
	return w, nil
}

// saysNothingNew says whether a document declares what is declared already, by whomever; or that
// daemons which no service declares are not managed, as Documents of them say.
func (c *call) saysNothingNew(d *document) bool {
	if !c.unchanged {
		return false
	}
	if d.fields["unmanaged"] == true && c.runsUndeclared(d.service) {
		return true
	}
	now, declared := c.declared[d.service]
	if !declared || c.takesMore(d) {
		return false
	}
	text, err := json.Marshal(now)
	if err != nil {
		return false
	}
	same, err := parse(text)
	return err == nil && reflect.DeepEqual(same.fields, d.fields) && reflect.DeepEqual(same.placement, d.placement)
}

// runsUndeclared says whether daemons run that belong to a service which nothing declares.
func (c *call) runsUndeclared(service string) bool {
	if c.declared[service] != nil {
		return false
	}
	for i := range c.view.Daemons {
		if ServiceOf(&c.view.Daemons[i], "") == service {
			return true
		}
	}
	return false
}

// isThere says whether there is a service or host of a document's name.
func (c *call) isThere(d *document) bool {
	if d.kind == kindHost {
		h := c.hostNamed(d.id)
		return h != nil && c.used[h.Name]
	}
	return c.declared[d.service] != nil
}

// skipped is the answer of Ceph's own orchestrator to a document that overwrites nothing.
func (c *call) skipped(d *document) Write {
	w := d.write(nil)
	w.Answer = fmt.Sprintf("Skipped %s service spec. To change %s spec omit --no-overwrite flag", d.service, d.service)
	if d.kind == kindHost {
		w.Answer = fmt.Sprintf("Skipped %s host spec. To change host spec omit --no-overwrite flag", d.id)
	}
	return w
}

const previewOnly = "preview_only"

// Preview says whether any document asks what would come of it (preview_only): then the whole call
// is a dry run. Documents of hosts cannot ask.
func Preview(docs []json.RawMessage) bool {
	for _, text := range docs {
		var d map[string]any
		if json.Unmarshal(text, &d) != nil {
			continue // it is refused
		}
		inner, _ := d["spec"].(map[string]any)
		if !isEmpty(d[previewOnly]) || !isEmpty(inner[previewOnly]) {
			return true
		}
	}
	return false
}
