package gluster

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-storage/holdfast/internal/glusterd"
)

// TestResolved reads what glfsheal of 10.3 printed.
func TestResolved(t *testing.T) {
	for out, want := range map[string]string{
		"Healed /d/c.\n": "",
		"GFID split-brain resolved for file /d/new2":                                            "",
		"Healing /d/c failed: File not in split-brain.\n":                                       "",
		"Healing /d/a failed: No difference in mtime.\n":                                        "Name the node",
		"Lookup failed on /d/new:Input/output error.\nNo difference in mtime for file /d/new\n": "Name the node",
		"Healing /d/b failed: No bigger file.\n":                                                "Name the node",
		"Healing /d failed:Operation not permitted.\n":                                          "it is a directory",
		"Lookup failed on /d/nosuch:No such file or directory.\n":                               "No such file",
		"": "gluster says",
	} {
		err := resolved(out)
		if got := err == nil; got != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("of %q: %v, and %q is wanted", out, err, want)
		}
	}
}

// TestResolveAll: a copy that cannot be reached yet is waited for, and not for ever, however many files there are.
func TestResolveAll(t *testing.T) {
	const away = "Healing /f failed:Transport endpoint is not connected.\n"
	params := map[string]string{glusterd.ParamKeep: "bigger-file", glusterd.ParamFiles: "/f\n/g\n/h"}
	for name, reachable := range map[string]int{"soon": 3, "never": 1000} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start, asked := time.Now(), 0
				err := resolveAll(t.Context(), params, func(...string) (string, error) {
					if asked++; asked < reachable {
						return away, nil
					}
					return "Healed /f.", nil
				})
				if took := time.Since(start); took > 20*time.Second || (err == nil) != (name == "soon") || err != nil && !strings.Contains(err.Error(), "when all bricks serve") {
					t.Errorf("after %v, asked %d times: %v", took, asked, err)
				}
			})
		})
	}
}

// TestResolveOne: a node with bricks in two sets, of which the second has the file.
func TestResolveOne(t *testing.T) {
	var asked []string
	heal := func(args ...string) (string, error) {
		asked = append(asked, strings.Join(args, " "))
		if args[1] == "h1:/b2" {
			return "Healed /f.", nil
		}
		return "Healing /f failed: Invalid argument.", nil
	}
	params := map[string]string{glusterd.ParamKeep: glusterd.KeepBrick, glusterd.ParamBricks: "h1:/b1 h1:/b2 h1:/b3"}
	if err := resolveOne(heal, params, "/f"); err != nil || strings.Join(asked, ",") != "source-brick h1:/b1 /f,source-brick h1:/b2 /f" {
		t.Errorf("%v, asked %q", err, asked)
	}
	if err := resolveOne(heal, map[string]string{glusterd.ParamKeep: glusterd.KeepBrick}, "/f"); err == nil {
		t.Error("no brick, no error")
	}
}
