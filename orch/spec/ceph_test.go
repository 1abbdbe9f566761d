package spec

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-storage/holdfast/engine"
)

// throughCeph has Ceph's own classes read documents and write them again. It answers with one line
// for each: the document, or an error.
const throughCeph = `
import json, sys
from ceph.deployment.hostspec import HostSpec
from ceph.deployment.service_spec import ServiceSpec
answers = []
for doc in json.load(sys.stdin):
    try:
        kind = HostSpec if 'hostname' in doc else ServiceSpec
        answers.append({'doc': kind.from_json(doc).to_json()})
    except Exception as e:
        answers.append({'error': repr(e)})
json.dump(answers, sys.stdout)
`

// cephAnswer is what Ceph's classes make of a document.
type cephAnswer struct {
	Doc   json.RawMessage `json:"doc"`
	Error string          `json:"error"`
}

func askCeph(t *testing.T, docs []json.RawMessage) (answers []cephAnswer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	input, err := json.Marshal(docs)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, "/usr/bin/python3", "-c", throughCeph)
	cmd.Stdin = bytes.NewReader(input)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &answers)
	}
	if err != nil || len(answers) != len(docs) {
		t.Fatalf("%v, %d answers: %s", err, len(answers), stderr.String())
	}
	return answers
}

// throughCephAll is what Ceph's classes make of documents, which they have to take.
func throughCephAll(t *testing.T, docs []json.RawMessage) (made []json.RawMessage) {
	t.Helper()
	for i, answer := range askCeph(t, docs) {
		if answer.Error != "" {
			t.Fatalf("%s: %s", docs[i], answer.Error)
		}
		made = append(made, answer.Doc)
	}
	return made
}

// TestDocuments_ceph: Ceph's classes take what is exported, and what they make of it changes
// nothing when it is applied.
func TestDocuments_ceph(t *testing.T) {
	view := running()
	docs := export(t, view)
	for _, service := range []string{"osd", "nfs.n1"} {
		text, err := json.Marshal(Undeclared(service))
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, text)
	}
	nothingNew(t, view, throughCephAll(t, docs))
}

// TestWrites_ceph: what Ceph's classes make of documents of Ceph's manual comes to the same as
// those, and what is exported then, and passes through Ceph, changes nothing.
func TestWrites_ceph(t *testing.T) {
	text, err := os.ReadFile("testdata/fresh/a6.json")
	var docs []json.RawMessage
	if err == nil {
		err = json.Unmarshal(text, &docs)
	}
	if err != nil {
		t.Fatal(err)
	}
	view := fresh()
	writes, err := Writes(Request{View: view, Docs: docs})
	if err != nil {
		t.Fatal(err)
	}
	again, err := Writes(Request{View: view, Docs: throughCephAll(t, docs)})
	if diff := cmp.Diff(writes, again); err != nil || diff != "" {
		t.Fatalf("%v (-as they are +through Ceph):\n%s", err, diff)
	}
	applied := apply(t, view, writes)
	nothingNew(t, applied, throughCephAll(t, export(t, applied)))
}

// nothingNew expects documents to change nothing.
func nothingNew(t *testing.T, v *engine.View, docs []json.RawMessage) {
	t.Helper()
	writes, err := Writes(Request{View: v, Docs: docs})
	if err != nil || len(writes) != len(docs) {
		t.Fatal(err, len(writes))
	}
	for _, w := range writes {
		if w.Object != nil {
			t.Errorf("%s is changed: %v", w.Service, w.Object.Object)
		}
	}
}
