// Prints the public names of Go packages, as client-go-names.txt has them.
//
// From the root of a client-go module:
//
//	go run client-go-names.go tools/cache tools/cache/synctrack tools/cache/testing informers \
//	    dynamic/dynamicinformer metadata/metadatainformer util/workqueue tools/watch tools/pager
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"sort"
	"strings"
)

func main() {
	for _, dir := range os.Args[1:] {
		names := map[string]bool{}
		handWritten := func(file fs.FileInfo) bool { return !strings.HasSuffix(file.Name(), "_test.go") }
		packages, err := parser.ParseDir(token.NewFileSet(), dir, handWritten, 0)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		for _, parsed := range packages {
			for _, file := range parsed.Files {
				for _, declaration := range file.Decls {
					declared(declaration, names)
				}
			}
		}
		sorted := make([]string, 0, len(names))
		for name := range names {
			sorted = append(sorted, name)
		}
		sort.Strings(sorted)
		for _, name := range sorted {
			fmt.Println(path.Base(dir), name)
		}
	}
}

func declared(declaration ast.Decl, names map[string]bool) {
	switch declaration := declaration.(type) {
	case *ast.FuncDecl:
		if declaration.Recv == nil {
			add(names, "", declaration.Name)
		} else {
			add(names, receiver(declaration.Recv.List[0].Type), declaration.Name)
		}
	case *ast.GenDecl:
		for _, spec := range declaration.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				add(names, "", spec.Name)
				for _, member := range members(spec.Type) {
					for _, name := range member.Names {
						add(names, spec.Name.Name, name)
					}
				}
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					add(names, "", name)
				}
			}
		}
	}
}

func add(names map[string]bool, of string, name *ast.Ident) {
	switch {
	case !name.IsExported():
	case of == "":
		names[name.Name] = true
	case ast.IsExported(of):
		names[of+"."+name.Name] = true
	}
}

func receiver(expression ast.Expr) string {
	switch expression := expression.(type) {
	case *ast.StarExpr:
		return receiver(expression.X)
	case *ast.IndexExpr:
		return receiver(expression.X)
	case *ast.IndexListExpr:
		return receiver(expression.X)
	case *ast.Ident:
		return expression.Name
	}
	return ""
}

func members(expression ast.Expr) []*ast.Field {
	switch expression := expression.(type) {
	case *ast.StructType:
		return expression.Fields.List
	case *ast.InterfaceType:
		return expression.Methods.List
	}
	return nil
}
