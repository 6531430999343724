package astrarium;

import static astrarium.Fixture.SOMEWHERE;
import static astrarium.Fixture.answered;
import static astrarium.Fixture.document;
import static astrarium.Fixture.refused;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.CosmosUserDefinedFunctionProperties;
import com.azure.cosmos.models.SqlParameter;
import com.azure.cosmos.models.SqlQuerySpec;
import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;
import java.util.Map;

/** User-defined functions in queries: in every clause, with every kind of value, in one partition and over all. */
class UserDefinedFunctionTest {
    private static final String TAX = "function tax(income) { return income === undefined ? undefined : income * (income < 1000 ? 0.25 : 0.5); }";

    private static CosmosContainer filled(Fixture fixture) {
        CosmosContainer container = fixture.container("items");
        for (int number = 0; number < 8; number++) {
            String place = number % 2 == 0 ? "somewhere" : "elsewhere";
            container.createItem(document(Map.of("id", "id-" + number, "pk", place, "income", number * 400)));
        }
        return container;
    }

    private static void function(CosmosContainer container, String id, String body) {
        answered(201, container.getScripts().createUserDefinedFunction(new CosmosUserDefinedFunctionProperties(id, body)));
    }

    private static List<JsonNode> rows(CosmosContainer container, String sql) {
        return container.queryItems(sql, new CosmosQueryRequestOptions(), JsonNode.class).stream().toList();
    }

    private static List<String> texts(CosmosContainer container, String sql) {
        return rows(container, sql).stream().map(row -> row.isValueNode() ? row.asText() : row.toString()).toList();
    }

    @OverBothSchemes
    void inEveryClause(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = filled(fixture);
            function(container, "tax", TAX);
            assertEquals(List.of("id-6", "id-7"), texts(container, "SELECT VALUE c.id FROM c WHERE udf.tax(c.income) > 1000 ORDER BY c.id"));
            assertEquals(List.of("100", "200"), texts(container, "SELECT VALUE udf.tax(c.income) FROM c WHERE c.income IN (400, 800) ORDER BY c.income"));
            assertEquals(List.of("{\"id\":\"id-1\",\"tax\":100}"), texts(container, "SELECT c.id, udf.tax(c.income) AS tax FROM c WHERE c.id = 'id-1'"));
            assertEquals(List.of("5"), texts(container, "SELECT VALUE COUNT(1) FROM c WHERE udf.tax(c.income) >= 600 AND udf.tax(c.income) <= 1400 AND c.income > 0"));
            assertEquals(300, rows(container, "SELECT VALUE SUM(udf.tax(c.income)) FROM c WHERE c.income < 1000").get(0).asDouble());
            var options = new CosmosQueryRequestOptions().setPartitionKey(SOMEWHERE);
            var query = new SqlQuerySpec("SELECT VALUE c.id FROM c WHERE udf.tax(c.income) > @least ORDER BY c.id", new SqlParameter("@least", 700));
            assertEquals(List.of("id-4", "id-6"), container.queryItems(query, options, String.class).stream().toList());
        }
    }

    @OverBothSchemes
    void valuesOfEveryKind(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = filled(fixture);
            function(container, "same", "function (value) { return value; }");
            function(container, "count", "function () { return arguments.length; }");
            function(container, "type", "function (value) { return value === null ? 'null' : typeof value; }");
            String where = " FROM c WHERE c.id = 'id-1'";
            assertEquals(List.of("{\"a\":[1,\"ä 鱀\",null,true,{\"b\":-0.5}]}"), texts(container, "SELECT VALUE udf.same({'a': [1, 'ä 鱀', null, true, {'b': -0.5}]})" + where));
            assertEquals(List.of("elsewhere"), texts(container, "SELECT VALUE udf.same(c).pk" + where));
            assertEquals(List.of("{\"a\":\"string\",\"b\":\"number\",\"c\":\"null\",\"d\":\"object\"}"),
                texts(container, "SELECT udf.type(c.id) AS a, udf.type(c.income) AS b, udf.type(null) AS c, udf.type([]) AS d" + where));
            assertEquals(List.of("2"), texts(container, "SELECT VALUE udf.count(1, null)" + where));
            // With an argument that is not there nothing is called, and what is undefined is left out.
            assertEquals(List.of(), texts(container, "SELECT VALUE udf.count(c.none, 1)" + where));
            assertEquals(List.of(), texts(container, "SELECT VALUE udf.same(c.none)" + where));
            assertEquals(List.of("{}"), texts(container, "SELECT udf.same(c.none) AS none" + where));
        }
    }

    @OverBothSchemes
    void overManyPages(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = filled(fixture);
            function(container, "tax", TAX);
            int pages = 0;
            int rows = 0;
            for (var page : container.queryItems("SELECT c.id FROM c WHERE udf.tax(c.income) >= 0", new CosmosQueryRequestOptions(), JsonNode.class).iterableByPage(3)) {
                pages++;
                rows += page.getResults().size();
            }
            assertEquals(8, rows);
            assertTrue(pages >= 3, "pages");
        }
    }

    @OverBothSchemes
    void whatFailsFailsItsQueryAlone(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = filled(fixture);
            function(container, "throws", "function (value) { throw new Error('no ' + value); }");
            function(container, "reaches", "function () { return getContext().getCollection(); }");
            function(container, "tax", TAX);
            var refusal = refused(400, () -> rows(container, "SELECT VALUE udf.throws(c.id) FROM c"));
            assertTrue(refusal.getMessage().contains("no id-"), refusal::getMessage);
            refused(400, () -> rows(container, "SELECT VALUE udf.reaches() FROM c"));
            refused(400, () -> rows(container, "SELECT VALUE udf.none(c.id) FROM c"));
            assertEquals(8, rows(container, "SELECT VALUE udf.tax(c.income) FROM c").size());
            refused(400, () -> function(container, "broken", "function ("));
        }
    }

    @OverBothSchemes
    void theLatestVersionIsCalled(String scheme) throws Exception {
        try (Fixture fixture = Fixture.over(scheme)) {
            CosmosContainer container = filled(fixture);
            function(container, "version", "function () { return 1; }");
            String sql = "SELECT VALUE udf.version() FROM c WHERE c.id = 'id-1'";
            assertEquals(List.of("1"), texts(container, sql));
            var version = container.getScripts().getUserDefinedFunction("version");
            version.replace(version.read().getProperties().setBody("function () { return 2; }"));
            assertEquals(List.of("2"), texts(container, sql));
            answered(204, version.delete());
            refused(400, () -> texts(container, sql));
        }
    }
}
