package docs

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/holdfast-storage/holdfast/test/pages"
)

// schemas are where the JSON schemas are; the first one chooses by the kind.
const schemas, anyKind = root + "/api/schema/", "holdfast.json"

func compile(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	schema, err := jsonschema.NewCompiler().Compile(schemas + name)
	if err != nil {
		t.Fatalf("the schema %s: %v", name, err)
	}
	return schema
}

// value is what a YAML document has, as a validator wants it.
func value(text []byte) (any, error) {
	asJSON, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, err
	}
	return jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
}

func check(schema *jsonschema.Schema, text []byte) error {
	v, err := value(text)
	if err != nil {
		return err
	}
	return schema.Validate(v)
}

// documents are the YAML documents of a file.
func documents(t *testing.T, text []byte) (all [][]byte) {
	t.Helper()
	reader := utilyaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(text)))
	defer reader.Close()
	buffer := make([]byte, 1<<20)
	for {
		n, err := reader.Read(buffer)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if v, err := value(buffer[:n]); err != nil || v != nil {
			all = append(all, slices.Clone(buffer[:n]))
		}
	}
}

// TestExamplesMatchSchema: each example is what the schemas allow, by the one for all kinds and by
// its own.
func TestExamplesMatchSchema(t *testing.T) {
	schema, checked := compile(t, anyKind), 0
	for _, pattern := range []string{"/examples/*.yaml", "/examples/*/*.yaml"} {
		files, err := filepath.Glob(root + pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, document := range documents(t, text) {
				checked++
				if err := check(schema, document); err != nil {
					t.Errorf("%s: %v\n%s", file, err, document)
				}
				checkOwn(t, file, document)
			}
		}
	}
	if checked < 30 {
		t.Errorf("found %d objects only", checked)
	}
}

// checkOwn checks an object of Holdfast by the schema of its kind.
func checkOwn(t *testing.T, file string, document []byte) {
	t.Helper()
	var object struct{ APIVersion, Kind string }
	if err := yaml.Unmarshal(document, &object); err != nil || !strings.HasPrefix(object.APIVersion, "holdfast.io/") {
		return
	}
	if err := check(compile(t, strings.ToLower(object.Kind)+".json"), document); err != nil {
		t.Errorf("%s: %v\n%s", file, err, document)
	}
}

// TestPagesMatchSchema: each manifest of a page is what the schemas allow, and each part of a
// manifest has fields that are there.
func TestPagesMatchSchema(t *testing.T) {
	schema, parts := compile(t, anyKind), partSchemas(t)
	manifests, fragments := 0, 0
	for _, block := range blocks(t) {
		for _, manifest := range block.Manifests() {
			manifests++
			if err := check(schema, []byte(manifest)); err != nil {
				t.Errorf("%s: %v\n%s", block.Where(), err, manifest)
			}
		}
		isPart := block.Language == "yaml" || strings.HasPrefix(block.Text(), "spec:")
		if isPart && !strings.Contains(block.Text(), "apiVersion:") {
			fragments++
			checkPart(t, block, parts)
		}
	}
	if manifests < 8 || fragments < 6 {
		t.Errorf("found %d manifests and %d parts only", manifests, fragments)
	}
}

func blocks(t *testing.T) (all []pages.Block) {
	t.Helper()
	files, err := pages.Files(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		found, _, err := pages.Read(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	return all
}

// checkPart checks a part of a manifest: it is the beginning of an object, or of its spec, of some
// kind.
func checkPart(t *testing.T, block pages.Block, schemas map[string]*jsonschema.Schema) {
	t.Helper()
	v, err := value([]byte(block.Text()))
	if err != nil {
		t.Errorf("%s: %v", block.Where(), err)
		return
	}
	var all []error
	for name, schema := range schemas {
		inSpec := schema.Validate(map[string]any{"spec": v})
		whole := schema.Validate(v)
		if inSpec == nil || whole == nil {
			return
		}
		all = append(all, errors.New(name), inSpec, whole)
	}
	t.Errorf("%s is part of no kind: %v\n%s", block.Where(), errors.Join(all...), block.Text())
}

// partSchemas are the schemas of the kinds without what is required.
func partSchemas(t *testing.T) map[string]*jsonschema.Schema {
	t.Helper()
	files, err := filepath.Glob(schemas + "*.json")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*jsonschema.Schema{}
	for _, file := range files {
		if filepath.Base(file) == anyKind {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		withoutRequired(v)
		name := "part-" + filepath.Base(file)
		compiler := jsonschema.NewCompiler()
		if err := compiler.AddResource(name, v); err != nil {
			t.Fatal(err)
		}
		if all[name], err = compiler.Compile(name); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func withoutRequired(v any) {
	switch x := v.(type) {
	case map[string]any:
		if _, isList := x["required"].([]any); isList {
			delete(x, "required")
		}
		for inner := range maps.Values(x) {
			withoutRequired(inner)
		}
	case []any:
		for _, inner := range x {
			withoutRequired(inner)
		}
	}
}

// TestSchemaRefuses: the schemas refuse what a newcomer writes wrongly, at the depth where it is.
func TestSchemaRefuses(t *testing.T) {
	const head = "apiVersion: holdfast.io/v1alpha1\nkind: Pool\nmetadata: {name: p}\n"
	schema := compile(t, anyKind)
	for _, right := range []string{
		head + "spec: {cluster: ceph, replicated: {size: 3}, quota: {maxBytes: 1Gi}}",
		"apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: b}",
		"apiVersion: holdfast.io/v1alpha1\nkind: StorageCluster\nmetadata: {name: c}\n" +
			"spec: {type: ceph, ceph: {config: {osd: {osd_max_scrubs: 2, osd_memory_target: 6G}}}}",
	} {
		if err := check(schema, []byte(right)); err != nil {
			t.Errorf("%s\n%v", right, err)
		}
	}
	for _, wrong := range []string{
		head + "spec: {cluster: ceph, replicas: 3}",
		head + "spec: {cluster: ceph, replicated: {sise: 3}}",
		head + "spec: {cluster: ceph, replicated: {size: three}}",
		head + "spec: {cluster: ceph, replicated: {size: 11}}",
		head + "spec: {cluster: ceph, deletionPolicy: Keep}",
		head + "spec: {replicated: {size: 3}}",
		head + "sepc: {cluster: ceph}\nspec: {cluster: ceph}",
		strings.Replace(head, "name: p", "title: p", 1) + "spec: {cluster: ceph}",
		strings.Replace(head, "kind: Pool", "kind: Pol", 1) + "spec: {cluster: ceph}",
		strings.Replace(head, "v1alpha1", "v1", 1) + "spec: {cluster: ceph}",
	} {
		if err := check(schema, []byte(wrong)); err == nil {
			t.Errorf("the schemas allow\n%s", wrong)
		}
	}
}
