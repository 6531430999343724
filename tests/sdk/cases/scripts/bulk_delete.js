// Removes what a query finds, page by page, and answers how many documents are gone and whether more may be there. The
// caller runs it again while there are more; `most` lets a test stop it earlier.
function bulkDelete(query, pageSize, most) {
  const collection = getContext().getCollection();
  const response = getContext().getResponse();
  const answer = { deleted: 0, more: true };
  response.setBody(answer);
  find(undefined);

  function find(continuation) {
    const options = { pageSize, continuation };
    collection.queryDocuments(collection.getSelfLink(), query, options, (error, documents, about) => {
      if (error) throw error;
      if (documents.length > 0) remove(documents);
      else if (about.continuation) find(about.continuation);
      else finish();
    });
  }

  function remove(documents) {
    if (answer.deleted === most) return;
    // What was found is gone afterwards, so the next search starts from the beginning.
    if (documents.length === 0) return find(undefined);
    collection.deleteDocument(documents[0]._self, {}, (error) => {
      if (error) throw error;
      answer.deleted += 1;
      response.setBody(answer);
      remove(documents.slice(1));
    });
  }

  function finish() {
    answer.more = false;
    response.setBody(answer);
  }
}
