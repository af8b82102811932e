"""A back end of omniidl that prints every name with its repository id."""
from omniidl import idlutil, idlvisitor


class Printer(idlvisitor.AstVisitor):
    def out(self,n): print(idlutil.ccolonName(n.scopedName()), n.repoId())
    def visitAST(self,n):
        for d in n.declarations(): d.accept(self)
    def visitModule(self,n):
        self.out(n)
        for d in n.definitions(): d.accept(self)
    def visitInterface(self,n):
        self.out(n)
        for d in n.contents(): d.accept(self)
    def visitForward(self,n): self.out(n)
    def visitConst(self,n): self.out(n)
    def visitTypedef(self,n):
        if n.constrType(): n.aliasType().decl().accept(self)
        for d in n.declarators(): self.out(d)
    def visitStruct(self,n):
        self.out(n)
        for m in n.members():
            if m.constrType(): m.memberType().decl().accept(self)
    def visitException(self,n): self.visitStruct(n)
    def visitUnion(self,n):
        self.out(n)
        if n.constrType(): n.switchType().decl().accept(self)
        for c in n.cases():
            if c.constrType(): c.caseType().decl().accept(self)
    def visitEnum(self,n): self.out(n)
    def visitNative(self,n): self.out(n)
    def visitStructForward(self,n): self.out(n)
    def visitUnionForward(self,n): self.out(n)
    def visitValue(self,n):
        self.out(n)
        for d in n.contents(): d.accept(self)
    def visitValueAbs(self,n): self.visitValue(n)
    def visitValueForward(self,n): self.out(n)
    def visitValueBox(self,n): self.out(n)
def run(tree,args): tree.accept(Printer())
