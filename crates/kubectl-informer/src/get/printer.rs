//! Prints objects one by one in the requested format.

use kube_informer::Obj;
use serde_json::Value;

use super::list::ListWriter;
use super::rows::{CustomColumns, Rows};
use super::template::Template;
use super::{Decoder, Rank};
use crate::args::Get;
use crate::args::get::GetForm;
use crate::client::connection::Connected;
use crate::client::kind_info::KindInfo;
use crate::client::targets::Target;
use crate::failure::Failure;
use crate::table::grid::{Grid, TableOptions};
use crate::terminal::output::Output;

/// The printer of one run.
pub(super) struct Printer<'a> {
    args: &'a Get,
    decoder: &'a Decoder,
    form: Form,
    /// Whether names are printed with their kind.
    shows_kinds: bool,
    /// With `--sort-by`, the objects of a kind until the last one is known. Rows of a table are
    /// sorted there.
    unsorted: Vec<(Rank, Obj<Value>)>,
}

enum Form {
    Table(Rows),
    List(ListWriter),
    Name,
    Template(Template),
    Columns(CustomColumns),
}

impl<'a> Printer<'a> {
    pub(super) fn new(args: &'a Get, decoder: &'a Decoder, targets: &[Target]) -> Result<Self, Failure> {
        // As in kubectl, a single object requested by name is printed without a list.
        let is_single = matches!(targets, [target] if target.names.len() == 1);
        let form = match &args.output {
            GetForm::Table | GetForm::Wide => Form::Table(Rows::new(args.no_headers)),
            GetForm::Json => Form::List(ListWriter::json(is_single)),
            GetForm::Yaml => Form::List(ListWriter::yaml(is_single)),
            GetForm::Name => Form::Name,
            GetForm::JsonPath(template) => Form::Template(Template::parse(template, is_single)?),
            GetForm::CustomColumns(columns) => Form::Columns(CustomColumns::parse(columns, args.no_headers)?),
        };
        let shows_kinds = args.show_kind || targets.len() > 1;
        Ok(Self { args, decoder, form, shows_kinds, unsorted: Vec::new() })
    }

    /// Whether objects have to be decoded.
    pub(super) fn needs_body(&self) -> bool {
        !matches!(self.form, Form::Name)
    }

    pub(super) fn is_table(&self) -> bool {
        matches!(self.form, Form::Table(_))
    }

    /// Begins with the objects of a kind.
    pub(super) async fn begin(&mut self, connected: &Connected, target: &Target) {
        if let Form::Table(rows) = &mut self.form {
            let options = table_options(self.args, &target.info, self.shows_kinds);
            rows.begin(Grid::of_kind(connected, &target.kind, options).await);
        }
    }

    pub(super) fn print(
        &mut self,
        out: &mut Output,
        target: &Target,
        object: Obj<Value>,
        body: Option<Value>,
    ) -> Result<(), Failure> {
        let rank = self.args.sort_by.as_ref().map(|path| Rank::of(object.value_at(path)));
        match (&mut self.form, rank) {
            (Form::Table(rows), rank) => {
                rows.add(rank, body.unwrap_or_default());
                Ok(())
            }
            (_, Some(rank)) => {
                self.unsorted.push((rank, object));
                Ok(())
            }
            (_, None) => self.print_now(out, target, &object, body),
        }
    }

    /// Prints what needs all objects of a kind.
    pub(super) fn end_of_kind(&mut self, out: &mut Output, target: &Target) -> Result<(), Failure> {
        if let Form::Table(rows) = &mut self.form {
            return rows.print(out);
        }
        let mut sorted = std::mem::take(&mut self.unsorted);
        sorted.sort_by(|(one, _), (other, _)| one.cmp(other));
        for (_, object) in sorted {
            let body = self.needs_body().then(|| self.decoder.body(target, &object));
            self.print_now(out, target, &object, body)?;
        }
        Ok(())
    }

    /// Prints what needs all objects.
    pub(super) fn end(&mut self, out: &mut Output) -> Result<(), Failure> {
        match &mut self.form {
            Form::Table(_) | Form::Name => Ok(()),
            Form::List(list) => list.end(out),
            Form::Template(template) => template.end(out),
            Form::Columns(columns) => columns.print(out),
        }
    }

    fn print_now(
        &mut self,
        out: &mut Output,
        target: &Target,
        object: &Obj<Value>,
        body: Option<Value>,
    ) -> Result<(), Failure> {
        let mut body = body.unwrap_or_default();
        self.args.choice.secrets().redact(target.kind.kind(), &mut body);
        match &mut self.form {
            Form::Name => out.line(&format!("{}/{}", target.info.singular_name(), object.name()))?,
            Form::List(list) => list.print(out, &body)?,
            Form::Template(template) => template.add(body),
            Form::Columns(columns) => columns.add(&body),
            Form::Table(_) => {}
        }
        Ok(())
    }
}

/// How the table of a kind is shown.
pub(super) fn table_options(args: &Get, kind: &KindInfo, shows_kinds: bool) -> TableOptions {
    TableOptions {
        wide: args.output == GetForm::Wide,
        namespaces: args.choice.all_namespaces && kind.namespaced,
        prefix: shows_kinds.then(|| kind.singular_name()),
        label_columns: args.label_columns.clone(),
        show_labels: args.show_labels,
    }
}
